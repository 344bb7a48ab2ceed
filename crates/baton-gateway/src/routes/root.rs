//! What can be asked, for a person who opens the address of the gateway.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use serde::Serialize;

use crate::{openapi, problem::ProblemShape, state::Shared};

/// What a gateway says first.
const ALIVE: &str = "I'm alive!";

pub(super) fn routes() -> MethodRouter<Shared> {
    get(root)
}

/// The routes, as JSON.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Greeting {
    /// Always the same.
    says: &'static str,
    routes: &'static [Route],
}

/// One route.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// What it does.
    pub(crate) summary: String,
}

/// The gateway lives, and these are its routes
#[utoipa::path(get, path = "/", tag = "api",
    responses(
        (status = 200, description = "`I'm alive!`, and below it a line for each route; JSON for those who accept it", content((String = "text/plain"), (Greeting = "application/json"))),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn root(State(state): State<Shared>, headers: HeaderMap) -> Response {
    let routes = openapi::listing(state.has_recipes);
    if wants_json(&headers) {
        let json = serde_json::to_vec(&Greeting { says: ALIVE, routes }).unwrap_or_default();
        return ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response();
    }
    let lines = routes.iter().map(|Route { method, path, summary }| format!("{method:6} {path:29} {summary}\n"));
    format!("{ALIVE}\n\n{}", lines.collect::<String>()).into_response()
}

/// Whether JSON is what the caller names: text is for browsers, and for those who take anything.
fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let mut types = accepted.flat_map(|it| it.split(',')).filter_map(|it| it.split(';').next());
    types.any(|it| it.trim().eq_ignore_ascii_case("application/json"))
}
