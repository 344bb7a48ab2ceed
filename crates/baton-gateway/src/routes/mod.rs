//! What can be asked, a resource a file.

mod call;
mod health;
mod jobs;
mod openapi;
mod push;
mod query;
mod sales;
mod say;
mod subset_sum;
mod total_sales;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    http::{Method, StatusCode, request::Parts},
    routing::MethodRouter,
};
use baton::Name;

pub(crate) use self::{
    call::__path_call,
    health::{__path_health, __path_ready},
    jobs::{__path_cancel, __path_events, __path_job, Job},
    openapi::__path_description,
    push::{__path_push, Pushed},
    sales::{__path_add, SaleShape, Sold},
    say::__path_say,
    subset_sum::__path_search,
    total_sales::__path_total,
};
use crate::{
    problem::Problem,
    state::{Shared, State},
};

/// All paths. A path and its methods stand here once; the description is held against this.
fn table() -> Vec<(&'static str, MethodRouter<Shared>)> {
    vec![
        ("/health", health::routes()),
        ("/health/ready", health::ready_routes()),
        ("/push/{queue}", push::routes()),
        ("/call/{queue}", call::routes()),
        ("/jobs/{queue}/{id}", jobs::routes()),
        ("/jobs/{queue}/{id}/events", jobs::event_routes()),
        ("/subsetSum", subset_sum::routes()),
        ("/totalSales", total_sales::routes()),
        ("/sales", sales::routes()),
        ("/say", say::routes()),
        ("/api/openapi.json", openapi::routes()),
    ]
}

/// The paths there are.
#[cfg(test)]
pub(crate) fn paths() -> Vec<&'static str> {
    table().into_iter().map(|(path, _)| path).collect()
}

/// All routes over what they share.
pub(crate) fn router(state: Shared) -> Router {
    let unknown =
        || async { Problem::new(StatusCode::NOT_FOUND, "unknown", "there is nothing here; see /api/openapi.json") };
    let wrong_method = |method: Method| async move {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            format!("{method} is not for this path; Allow says what is"),
        )
    };
    let router = table().into_iter().fold(Router::new(), |router, (path, routes)| router.route(path, routes));
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(state)
}

/// The queue of a path.
pub(crate) struct OfQueue(pub(crate) Name);

impl FromRequestParts<Shared> for OfQueue {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &std::sync::Arc<State>) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| bad_path())?;
        Name::new(&name).map(Self).map_err(|_| bad_queue())
    }
}

fn bad_path() -> Problem {
    Problem::bad("bad-path", "the path is not UTF-8 text")
}

fn bad_queue() -> Problem {
    Problem::bad("bad-queue", "a queue's name has 1 to 64 of A-Z a-z 0-9 . _ : -")
}
