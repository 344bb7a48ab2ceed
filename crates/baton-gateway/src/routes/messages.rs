//! Calls: their state, their events, and cancelling them.

use axum::{
    body::Body,
    extract::{FromRequestParts, Path, RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts},
    response::IntoResponse as _,
    routing::{MethodRouter, get},
};
use baton::{CallId, CallState, CallStatus, Cancelling, Name, Since};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{bad_path, bad_queue, query::Query};
use crate::{
    admission::Admission,
    following::{Streaming, place},
    forms::Form,
    gate::Operates,
    intake::other_message,
    negotiation,
    problem::{Problem, ProblemShape},
    state::{self, Shared},
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) fn routes() -> MethodRouter<Shared> {
    get(message).delete(cancel)
}

pub(super) fn event_routes() -> MethodRouter<Shared> {
    get(events)
}

/// A call and how it stands.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct MessageView<'a> {
    #[schema(value_type = String)]
    queue: &'a str,
    id: u64,
    /// The store's time of its push, in milliseconds. `queue/id@born` is its name for good; ids begin again when a
    /// store loses its data
    born: u64,
    /// ready, delayed, in-flight or cancelling; at the end done, failed or cancelled
    #[schema(value_type = String)]
    state: CallState,
    /// The result of its handler, if it is done
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    result: Option<&'a RawValue>,
    /// Why it failed, in one line; `baton errors` has all of it
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// While it waits, and in the answer of a push: how many live nodes work for its queue, at most a second ago. 0
    /// where none does, e.g. where the name of the queue is mistyped
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u64>,
    /// The first event that is kept
    first_event: u64,
    /// The number that the next event gets
    next_event: u64,
}

/// The call of a path.
pub(crate) struct OfCall(pub(crate) CallId);

impl FromRequestParts<Shared> for OfCall {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((queue, id)) = path.map_err(|_| bad_path())?;
        let queue = Name::new(&queue).map_err(|_| bad_queue())?;
        let call = format!("{queue}/{id}").parse();
        let detail = "an id is a number from 1 on, or such a number and the time of the push, e.g. 7@1763300000000";
        call.map(Self).map_err(|_| Problem::bad("bad-id", detail))
    }
}

impl state::State {
    /// How a call stands.
    pub(crate) async fn status(&self, call: &CallId) -> Result<CallStatus, Problem> {
        let status = self.asked(|fleet| async move { fleet.call_status(call).await }).await?;
        status.ok_or_else(unknown)
    }

    /// How many nodes could take up a call that waits.
    async fn nodes_while_waiting(&self, call: &CallId, status: &CallStatus) -> Option<u64> {
        match status.state {
            CallState::Ready | CallState::Delayed | CallState::Cancelling => self.view.nodes_of(&call.queue).await,
            _ => None,
        }
    }
}

fn unknown() -> Problem {
    let detail =
        "there is no such message: it never existed, it was one of many in a request, or it ended over an hour ago";
    Problem::new(StatusCode::NOT_FOUND, "unknown-message", detail)
}

/// A call as JSON, with how many nodes work for its queue if that is known.
pub(crate) fn shown(code: StatusCode, call: &CallId, status: &CallStatus, nodes: Option<u64>) -> Response<Body> {
    let call = CallId { born: Some(status.born), ..call.clone() };
    let message = MessageView {
        queue: call.queue.as_str(),
        id: call.id.0,
        born: status.born,
        state: status.state,
        result: status.result.as_deref().and_then(|json| serde_json::from_slice(json).ok()),
        error: status.error.as_deref(),
        nodes,
        first_event: status.first,
        next_event: status.next,
    };
    let mut response = Response::new(Body::from(serde_json::to_vec(&message).unwrap_or_default()));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(place(&call).map(|place| (header::LOCATION, place)));
    response
}

/// How a message stands
#[utoipa::path(get, path = "/messages/{queue}/{id}", tag = "messages",
    params(
        ("queue" = String, Path, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,64}$"),
        ("id" = String, Path, description = "As `Location` names it: the id, and behind `@` the store's time of the push, which distinguishes the message from a later one with its id if the store loses data. The id alone names the message that has it now", pattern = "^[0-9]{1,16}(@[0-9]{1,16})?$")),
    responses(
        (status = 200, description = "Its state, and its result if it is done", body = MessageView<'static>, content_type = "application/json"),
        (status = 400, description = "No queue, no id, or a query", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "There is no such message, or not any more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "Another message has this id by now: the store lost data after the push", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn message(
    State(state): State<Shared>, OfCall(call): OfCall, RawQuery(query): RawQuery,
) -> Result<Response<Body>, Problem> {
    Query::none(query.as_deref(), &[])?;
    let status = state.status(&call).await?;
    let nodes = state.nodes_while_waiting(&call, &status).await;
    Ok(shown(StatusCode::OK, &call, &status, nodes))
}

/// Cancel a message
///
/// A message that waits does not run; one that waits for another attempt ends at once; one that runs is stopped within
/// a moment. One that has ended stays as it is. Cancelling is a mark that nodes act upon: a message that waits for its
/// first attempt where no node works for its queue stays `cancelling` until one does.
#[utoipa::path(delete, path = "/messages/{queue}/{id}", tag = "messages",
    params(
        ("queue" = String, Path, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,64}$"),
        ("id" = String, Path, description = "As `Location` names it: the id, and behind `@` the store's time of the push, which distinguishes the message from a later one with its id if the store loses data. The id alone names the message that has it now", pattern = "^[0-9]{1,16}(@[0-9]{1,16})?$")),
    responses(
        (status = 200, description = "It had ended before", body = MessageView<'static>, content_type = "application/json"),
        (status = 202, description = "It is being cancelled", body = MessageView<'static>, content_type = "application/json"),
        (status = 400, description = "No queue, no id, or a query", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token does not allow it, or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "There is no such message, or not any more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "Another message has this id by now: the store lost data after the push", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn cancel(
    _: Operates, State(state): State<Shared>, OfCall(call): OfCall, RawQuery(query): RawQuery,
) -> Result<Response<Body>, Problem> {
    Query::none(query.as_deref(), &[])?;
    let cancelling = state.asked(|fleet| {
        let call = &call;
        async move { fleet.cancel_call(call).await }
    });
    let code = match cancelling.await? {
        Cancelling::Unknown => return Err(unknown()),
        Cancelling::Ended => StatusCode::OK,
        Cancelling::Marked | Cancelling::More | Cancelling::Followed => StatusCode::ACCEPTED,
    };
    let status = state.status(&call).await?;
    let nodes = state.nodes_while_waiting(&call, &status).await;
    Ok(shown(code, &call, &status, nodes))
}

/// Follow the events of a message
///
/// From its first event on, or behind `Last-Event-ID`, or from a number or `now`; up to its last event: `end`, `error`
/// or `cancelled`. They come as NDJSON, an `Event` a line, which is also for who accepts `application/json` or
/// anything, or as server-sent events for who accepts `text/event-stream`. In NDJSON empty lines, one after 15 s
/// without an event, are to be skipped.
#[utoipa::path(get, path = "/messages/{queue}/{id}/events", tag = "messages",
    params(
        ("queue" = String, Path, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,64}$"),
        ("id" = String, Path, description = "As `Location` names it: the id, and behind `@` the store's time of the push, which distinguishes the message from a later one with its id if the store loses data. The id alone names the message that has it now", pattern = "^[0-9]{1,16}(@[0-9]{1,16})?$"),
        ("from" = Option<String>, Query, description = "The `number` of the first event wanted, which is what stands behind the colon of the `id` of a server-sent one; or `now`", pattern = "^([0-9]{1,18}|now)$"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was read, as `queue/id@born:number`")),
    responses(
        (status = 200, description = "Events as they are emitted", content((String = "application/x-ndjson"), (String = "text/event-stream"))),
        (status = 204, description = "It has ended, and its last event was read before"),
        (status = 400, description = "No queue, no id or no place among events", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "There is no such message, or not any more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 406, description = "Neither form is accepted", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "These events are not kept any more, or another message has this id by now: the store lost data after the push", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn events(
    State(state): State<Shared>, OfCall(mut call): OfCall, admission: Admission, RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    let form = negotiation::form(&headers, &[Form::Lines, Form::Events])?;
    let since = match last_event(&headers)? {
        // A browser that comes again has the same query as before.
        Some((of, number)) => {
            call = of.map_or(Ok(call.clone()), |of| read_before(call, of))?;
            Since::Number(number.saturating_add(1))
        }
        None => from(query.as_deref())?,
    };
    follow(&state, &admission, call, since, form).await
}

/// The call of a path, whose caller has read events before.
fn read_before(call: CallId, of: CallId) -> Result<CallId, Problem> {
    if (&of.queue, of.id) != (&call.queue, call.id) {
        return Err(Problem::bad("bad-event-id", "the Last-Event-ID belongs to another message"));
    }
    match (call.born, of.born) {
        (Some(now), Some(before)) if now != before => Err(other_message()),
        (born, before) => Ok(CallId { born: born.or(before), ..call }),
    }
}

/// Follows a call that may have ended, and whose events may have gone.
pub(super) async fn follow(
    state: &Shared, admission: &Admission, call: CallId, since: Since, form: Form,
) -> Result<Response<Body>, Problem> {
    let status = state.status(&call).await?;
    let call = CallId { born: Some(status.born), ..call };
    let wanted = match since {
        Since::Start => 1,
        Since::Number(number) => number.max(1),
        Since::Now => status.next,
    };
    if wanted < status.first {
        let detail = format!("events before number {} are not kept any more", status.first);
        return Err(Problem::new(StatusCode::GONE, "events-gone", detail).with("first", status.first));
    }
    if status.state.is_end() && wanted >= status.next {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = state.room.stream()?;
    let streaming = Streaming { call, since: Since::Number(wanted), form, forsaken: false, limit: None };
    Ok(streaming.respond(state, admission, place))
}

/// The last event that a caller has read: of which call, unless it gives a number alone, and which.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<(Option<CallId>, u64)>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let bad = || Problem::bad("bad-event-id", "a Last-Event-ID has the form `queue/id@born:number`");
    let text = value.to_str().map_err(|_| bad())?;
    // A browser that has read none sends this.
    if text.is_empty() {
        return Ok(None);
    }
    let (call, number) = match text.rsplit_once(':') {
        Some((call, number)) => (Some(call.parse().map_err(|_| bad())?), number),
        None => (None, text),
    };
    Ok(Some((call, place_of(number).ok_or_else(bad)?)))
}

fn from(query: Option<&str>) -> Result<Since, Problem> {
    let query = Query::parse(query.unwrap_or_default())?;
    query.only(&["from"])?;
    match query.get("from")? {
        None => Ok(Since::Start),
        Some("now") => Ok(Since::Now),
        Some(number) => {
            let bad = || Problem::bad("bad-from", "from is the number of an event, or `now`");
            place_of(number).map(Since::Number).ok_or_else(bad)
        }
    }
}

/// The number of an event; one that is too large for a number is behind all.
fn place_of(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX >> 1).min(u64::MAX >> 1))
}
