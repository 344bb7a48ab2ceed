//! Refusals as of RFC 9457.
//!
//! A problem says what is wrong and what to do, and repeats no body, header or query of the request but for names that
//! were found to be names.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Map, Value};

use crate::lines::Ids;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// A refusal.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// The outcome of the request, if it matters.
    outcome: Option<&'static str>,
    members: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// One with this status. `code` is for programs, `detail` for people.
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), outcome: None, members: Map::new(), headers: Vec::new() }
    }

    /// A request that is wrong in itself.
    pub(crate) fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// A request that cannot be answered now, and the seconds after which to try again.
    pub(crate) fn busy(code: &'static str, detail: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(seconds)
    }

    /// A request that cannot be answered now; the gate adds when to try again, by how long the trouble has lasted.
    pub(crate) fn trouble(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
    }

    /// Says after how many seconds it may be tried again.
    pub(crate) fn after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// The same, said of a part of the request.
    pub(crate) fn of(self, what: &str) -> Self {
        Self { detail: format!("{what}: {}", self.detail), ..self }
    }

    /// The same with what is to be done.
    pub(crate) fn next(self, step: &str) -> Self {
        Self { detail: format!("{}; {step}", self.detail), ..self }
    }

    /// The same with what became of the request.
    pub(crate) fn leaving(self, outcome: &'static str) -> Self {
        Self { outcome: Some(outcome), ..self }
    }

    /// The same with another word for what became of the request, if it says that.
    pub(crate) fn leaving_instead(self, outcome: &'static str) -> Self {
        Self { outcome: self.outcome.and(Some(outcome)), ..self }
    }

    /// The same with a further member.
    pub(crate) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Its code.
    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    /// Its status.
    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Its JSON.
    pub(crate) fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("type".to_owned(), "about:blank".into());
        object.insert("title".to_owned(), self.status.canonical_reason().unwrap_or("Error").into());
        object.insert("status".to_owned(), self.status.as_u16().into());
        object.insert("code".to_owned(), self.code.into());
        let outcome = self.outcome.map(|outcome| format!("; {outcome}")).unwrap_or_default();
        object.insert("detail".to_owned(), format!("{}{outcome}", self.detail).into());
        object.extend(self.members.clone());
        Value::Object(object)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.headers);
        response
    }
}

/// The shape of a problem, for the description of the routes.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemShape {
    /// Always `about:blank`: `code` distinguishes problems.
    r#type: String,
    title: String,
    status: u16,
    code: String,
    /// The cause, and the next step.
    detail: String,
    /// For an upload of many messages: how many of the first ones are stored for sure; with the code `data-lost`, how
    /// many that came after the loss.
    stored: Option<u64>,
    /// For an upload of many messages: the wrong line, from 1.
    line: Option<u64>,
    /// For an upload of many messages: the ids of those that are stored for sure.
    ids: Option<Vec<Ids>>,
    /// With `events-gone`: the number of the first event that is kept.
    first: Option<u64>,
    /// With `store-away`: how many requests wait for the store.
    waiting: Option<u64>,
}
