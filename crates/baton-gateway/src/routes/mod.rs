//! What can be asked, a resource a file.

mod call;
mod health;
mod messages;
mod openapi;
mod push;
mod query;
mod root;
mod sales;
mod say;
mod subset_sum;
mod total_sales;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    http::{StatusCode, Uri, request::Parts},
    routing::{MethodRouter, any},
};
use baton::Name;

pub(crate) use self::{
    call::__path_call,
    health::{__path_health, __path_ready},
    messages::{__path_cancel, __path_events, __path_message, MessageView},
    openapi::__path_description,
    push::{__path_push, Pushed},
    root::{__path_root, Greeting, Route},
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
        ("/", root::routes()),
        ("/health", health::routes()),
        ("/health/ready", health::ready_routes()),
        ("/push/{queue}", push::routes()),
        ("/call/{queue}", call::routes()),
        ("/messages/{queue}/{id}", messages::routes()),
        ("/messages/{queue}/{id}/events", messages::event_routes()),
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

/// The paths of the recipes, which a gateway has on request.
const RECIPES: [&str; 4] = ["/subsetSum", "/totalSales", "/sales", "/say"];

/// Whether a gateway without recipes has no such path.
pub(crate) fn is_recipe(path: &str) -> bool {
    RECIPES.contains(&path)
}

/// All routes over what they share.
pub(crate) fn router(state: Shared) -> Router {
    let unknown = |uri: Uri| async move {
        let hint = meant(&uri).map(|path| format!("did you mean {path}? ")).unwrap_or_default();
        let detail = format!("there is nothing here; {hint}/api/openapi.json names all paths");
        Problem::new(StatusCode::NOT_FOUND, "unknown", detail)
    };
    let wrong_method = |uri: Uri| async move {
        let path = meant(&uri).unwrap_or_default();
        let detail = format!("this method is not for {path}: use {}", crate::openapi::methods(path));
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail)
    };
    let has_recipes = state.has_recipes;
    let router = table().into_iter().fold(Router::new(), |router, (path, routes)| {
        let routes = if has_recipes || !is_recipe(path) { routes } else { any(without_recipes) };
        router.route(path, routes)
    });
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(state)
}

/// The answer for a recipe where there are none.
async fn without_recipes(uri: Uri) -> Problem {
    let detail = format!(
        "{} is a recipe, and this gateway was started without them; start it with --recipes, or with recipes = true in its \
         baton.toml",
        meant(&uri).unwrap_or_default()
    );
    Problem::new(StatusCode::NOT_FOUND, "no-recipes", detail)
}

/// The path that is asked for, or was meant.
fn meant(uri: &Uri) -> Option<&'static str> {
    table().into_iter().map(|(path, _)| path).find(|path| is_meant(path, uri.path()))
}

/// Whether a path is another one but for upper and lower case and a slash at its end.
fn is_meant(path: &str, asked: &str) -> bool {
    let asked = asked.strip_suffix('/').unwrap_or(asked);
    let pairs = || path.split('/').zip(asked.split('/'));
    path.split('/').count() == asked.split('/').count()
        && pairs().all(|(one, other)| match one.starts_with('{') {
            true => !other.is_empty(),
            false => one.eq_ignore_ascii_case(other),
        })
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
    Problem::bad("bad-queue", "a queue's name has 1 to 64 of A-Z a-z 0-9 . _ : - and is not . or .. alone")
}
