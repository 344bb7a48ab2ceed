//! The description of all routes.

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::IntoResponse,
    routing::{MethodRouter, get},
};

use crate::{openapi, state::Shared};

pub(super) fn routes() -> MethodRouter<Shared> {
    get(description)
}

/// This description
#[utoipa::path(get, path = "/api/openapi.json", tag = "api",
    responses(
        (status = 200, description = "OpenAPI 3.1", body = Object, content_type = "application/json"),
        (status = 401, description = "No token, or none that is valid", body = crate::problem::ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn description(State(state): State<Shared>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], openapi::json(state.has_recipes))
}
