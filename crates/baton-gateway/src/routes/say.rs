//! The time, from a module that may not have started yet.

use axum::{
    extract::{RawQuery, State},
    routing::{MethodRouter, get},
};

use super::query::Query;
use crate::{
    problem::{Problem, ProblemShape},
    state::Shared,
};

pub(super) fn routes() -> MethodRouter<Shared> {
    get(say)
}

/// The time
///
/// The module that says it may take its time to start (`--demo-init`): requests that come earlier wait for it, in
/// order.
#[utoipa::path(get, path = "/say", tag = "demonstration",
    responses(
        (status = 200, description = "`I say Current time is: …`", body = String, content_type = "text/plain"),
        (status = 400, description = "A query", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or it did not start in time", body = ProblemShape, content_type = "application/problem+json", headers(("Retry-After" = u64)))))]
pub(crate) async fn say(State(state): State<Shared>, RawQuery(query): RawQuery) -> Result<String, Problem> {
    Query::none(query.as_deref(), &[])?;
    let said = state.speaker.call(0, |speaker| async move { speaker.something() }).await;
    let said = said.map_err(|unready| Problem::busy("starting", unready.to_string(), 2))?;
    Ok(format!("I say {said}"))
}
