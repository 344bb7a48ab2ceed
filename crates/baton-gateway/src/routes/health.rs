//! Whether the gateway lives, and whether it can store messages. Both answers need no token and no store, and come at
//! once.

use axum::{
    extract::State,
    response::IntoResponse,
    routing::{MethodRouter, get},
};

use crate::{problem::Problem, state::Shared};

pub(super) fn routes() -> MethodRouter<Shared> {
    get(health)
}

pub(super) fn ready_routes() -> MethodRouter<Shared> {
    get(ready)
}

/// The gateway lives
#[utoipa::path(get, path = "/health", tag = "health", security(()),
    responses((status = 200, description = "It lives", body = String, content_type = "text/plain")))]
pub(crate) async fn health() -> &'static str {
    "I'm alive!"
}

/// The store answers and takes messages
#[utoipa::path(get, path = "/health/ready", tag = "health", security(()), responses(
    (status = 200, description = "Requests can be answered", body = String, content_type = "text/plain"),
    (status = 503, description = "`store-away`: the store does not answer; `waiting` says how many requests wait for it. `store-evicts`: the Redis server may drop stored messages (its `maxmemory-policy` is not `noeviction`), so messages are refused; other requests are answered", body = crate::problem::ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn ready(State(state): State<Shared>) -> Result<impl IntoResponse, Problem> {
    if state.fleet.store().may_drop() {
        let detail = "the Redis server may drop stored messages, so the gateway takes no new ones: run `CONFIG SET \
                      maxmemory-policy noeviction` there, and set it in the configuration file of the server";
        Err(Problem::trouble("store-evicts", detail))
    } else if state.readiness.store.is_started() {
        Ok("ready")
    } else {
        let waiting = state.readiness.store.waiting();
        let detail = "the store does not answer; `baton status`, on the gateway's machine, says more";
        Err(Problem::trouble("store-away", detail).with("waiting", waiting))
    }
}
