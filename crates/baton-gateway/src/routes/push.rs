//! Messages from outside.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header},
    routing::{MethodRouter, post},
};
use baton::{CallId, CallOptions, CallState, CallStatus, Key};
use serde::Serialize;
use tokio::time::Duration;

use super::{
    OfQueue,
    call::{LINGER, SHARE, is_shared},
    messages::shown,
    query::Query,
};
use crate::{
    admission::{Admission, Validity},
    body::{Media, awaited_bytes, check_one, media, read_message, refuse},
    following::place,
    gate::Operates,
    intake::lost,
    lines::{Ids, Lines, PARCEL_BYTES},
    negotiation,
    problem::{Problem, ProblemShape},
    state::Shared,
};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Names that are likely in a query, and the headers that they are.
pub(super) const KEY_HEADERS: [(&str, &str); 2] =
    [("key", "Idempotency-Key: KEY"), (IDEMPOTENCY_KEY, "Idempotency-Key: KEY")];
const HEADERS: [(&str, &str); 3] = [("wait", "Prefer: wait=N"), KEY_HEADERS[0], KEY_HEADERS[1]];
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

pub(super) fn routes() -> MethodRouter<Shared> {
    post(push)
}

/// The messages that were stored.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
pub(crate) struct Pushed<'a> {
    /// The queue.
    #[schema(value_type = String)]
    queue: &'a str,
    /// How many messages.
    stored: u64,
    /// Their ids, in the order of the messages.
    ids: &'a [Ids],
    /// For a single message: the store's time of its push, in milliseconds. `queue/id@born` is its name for good; ids
    /// begin again when a store loses its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    /// How many live nodes work for the queue, at most a second ago: with 0 the messages wait. Missing if the store
    /// does not answer that in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<u64>,
    /// After a wait (`Prefer: wait`) that ended before the message: `waiting`, `delayed`, `running` or `cancelling`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<CallState>,
    /// After such a wait: why the message has not ended, e.g. that its queue is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Push messages
///
/// One JSON body is one message; NDJSON is many, one a line, which are stored as they come in. The answer comes when
/// they are stored.
#[utoipa::path(post, path = "/push/{queue}", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue", pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,64}$"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: the answer comes when the message has ended, or after N seconds, at most 60"),
        ("Idempotency-Key" = Option<String>, Header, description = "One message exists once however often it is pushed under its key, for a day", min_length = 1, max_length = 200),
        ("Baton-Share" = Option<String>, Header, description = "`1`: equal bodies are one message as long as it has not ended; for a single message", pattern = "^1$")),
    request_body(content(
        (serde_json::Value = "application/json"),
        (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "Stored and ended within the time that was waited", body = super::MessageView<'static>, content_type = "application/json", headers(("Location" = String), ("Preference-Applied" = String))),
        (status = 202, description = "Stored", body = Pushed<'static>, content_type = "application/json", headers(("Location" = String, description = "The message, of a single message"))),
        (status = 400, description = "No JSON, too deep, no queue, or a query; of many the first are stored, as `stored` says", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token does not allow it, or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "The queues of the fleet are described, and this is none of them, not stored, and no live node works for it: the name is probably mistyped", body = ProblemShape, content_type = "application/problem+json"),
        (status = 408, description = "The message took too long to come in", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "The store lost data: with the code `gone` or `other-message`, while the end was waited for, and the message with it; with `data-lost`, while lines came in: those before the loss are gone, and `stored` and `ids` tell only what came after it", body = ProblemShape, content_type = "application/problem+json"),
        (status = 413, description = "A message is too long", body = ProblemShape, content_type = "application/problem+json"),
        (status = 415, description = "Neither JSON nor NDJSON, or packed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 422, description = "The key was used with another body", body = ProblemShape, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemShape, content_type = "application/problem+json", headers(("Retry-After" = u64))),
        (status = 503, description = "Too much is under way, or the store is away and did not answer in time; with the code `maybe-stored` the message may be stored, and only with a key it is safe to repeat; with `stopping` the gateway stops, and of many lines the first are stored, as `stored` says", body = ProblemShape, content_type = "application/problem+json", headers(("Retry-After" = u64)))))]
pub(crate) async fn push(
    _: Operates, State(state): State<Shared>, OfQueue(queue): OfQueue, admission: Admission, RawQuery(query): RawQuery,
    headers: HeaderMap, body: Body,
) -> Result<Response<Body>, Problem> {
    let wanted = async || {
        Query::none(query.as_deref(), &HEADERS)?;
        let (media, key) = (media(&headers)?, idempotency_key(&headers)?);
        if media == Media::Lines && key.is_some() {
            let detail = "an Idempotency-Key is for one message; push many without, or each with its own";
            return Err(Problem::bad("key-of-many", detail));
        }
        let share = is_shared(&headers, key.as_ref())?;
        if media == Media::Lines && share {
            let detail = format!("{SHARE} is for one message: push each with its own request, or leave the header out");
            return Err(Problem::bad("bad-share", detail));
        }
        if headers.contains_key(LINGER) {
            let detail = format!("{LINGER} is for /call, whose caller follows the message: leave it out, or use /call");
            return Err(Problem::bad("bad-linger", detail));
        }
        state.check_queue(&queue).await?;
        // Before anything of the body is read.
        let seat = match media {
            Media::Json => state.seat(awaited_bytes(&state.limits, &headers)),
            Media::Lines => state.seat(PARCEL_BYTES),
        }?;
        Ok((media, CallOptions { key, share, linger: None }, seat))
    };
    let (media, options, mut seat) = match wanted().await {
        Ok(wanted) => wanted,
        Err(problem) => {
            refuse(&headers, body).await;
            return Err(problem);
        }
    };
    match media {
        Media::Json => {
            let mut permit = admission.bytes(&state.room);
            let bytes = read_message(&state, &headers, body, &mut permit).await?;
            let message = check_one(&state.limits, &bytes)?;
            let (call, is_new) = state.store_call(&mut seat, &queue, message, &options).await?;
            drop(seat);
            drop(permit);
            match negotiation::wait(&headers) {
                // Keys are kept for longer than results: it may have ended long ago.
                Some(_) if !is_new && is_unknown(&state.status(&call).await) => {
                    Ok(accepted(&call, state.view.nodes_of(&queue).await, None))
                }
                Some(time) => waited(&state, &admission, &call, time).await,
                None => Ok(accepted(&call, state.view.nodes_of(&queue).await, None)),
            }
        }
        Media::Lines => {
            drop(seat);
            // They may come in for as long as they like, and leave the place of a request to others.
            if let Err(problem) = admission.becomes_stream(&state.room) {
                refuse(&headers, body).await;
                return Err(problem);
            }
            let (count, ids) = Lines::new(&state, &admission, &queue).store(&headers, body).await?;
            let nodes = state.view.nodes_of(&queue).await;
            Ok(answer(&Pushed { queue: queue.as_str(), stored: count, ids: &ids, nodes, ..Pushed::default() }))
        }
    }
}

/// The answer for a message that is stored; with its state and why it has not ended, if its end was waited for.
fn accepted(call: &CallId, nodes: Option<u64>, stands: Option<(CallState, Option<String>)>) -> Response<Body> {
    let ids = [Ids { first: call.id.0, last: call.id.0 }];
    let (state, why) = stands.map_or((None, None), |(state, why)| (Some(state), why));
    let mut response =
        answer(&Pushed { queue: call.queue.as_str(), stored: 1, ids: &ids, born: call.born, nodes, state, why });
    response.headers_mut().extend(place(call).map(|place| (header::LOCATION, place)));
    response
}

/// Waits for the end of a call: how it ended, or that it has not yet.
async fn waited(
    state: &Shared, admission: &Admission, call: &CallId, time: Duration,
) -> Result<Response<Body>, Problem> {
    // Without room for a wait, the answer comes now: the message is stored.
    if time.is_zero() || admission.becomes_stream(&state.room).is_err() {
        return ended(state, call, time).await;
    }
    let ended = async {
        state.until_ended(call, time).await;
        ended(state, call, time).await
    };
    let mut validity = admission.validity();
    tokio::select! {
        biased;
        // The message is stored; its end is not for this peer any more.
        () = Validity::ends(&mut validity, state) => Ok(accepted(call, None, None)),
        ended = ended => ended,
    }
}

/// Whether the store knows no such call.
fn is_unknown(status: &Result<CallStatus, Problem>) -> bool {
    status.as_ref().is_err_and(|problem| problem.status() == StatusCode::NOT_FOUND)
}

/// How a call ended that was waited for, or that it has not yet.
async fn ended(state: &Shared, call: &CallId, time: Duration) -> Result<Response<Body>, Problem> {
    let applied = HeaderValue::from_str(&format!("wait={}", time.as_secs())).ok();
    let mut response = match state.status(call).await {
        Ok(status) if status.state.is_end() => {
            shown(StatusCode::OK, call, &status, state.view.nodes_of(&call.queue).await)
        }
        // The store lost it while its end was waited for.
        Err(problem) if problem.status() == StatusCode::GONE => return Err(problem),
        unknown if is_unknown(&unknown) => return Err(lost()),
        status => {
            let view = state.view.now().await;
            let nodes = view.as_ref().map(|view| view.nodes_of(&call.queue));
            let stands = status.ok().map(|status| {
                let why = view.as_ref().and_then(|view| view.why_unended(&call.queue, status.state));
                (status.state, why)
            });
            let mut response = accepted(call, nodes, stands);
            let seconds = state.view.paces().until_empty(&call.queue);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            response
        }
    };
    response.headers_mut().extend(applied.map(|applied| (PREFERENCE_APPLIED, applied)));
    Ok(response)
}

fn answer(pushed: &Pushed<'_>) -> Response<Body> {
    let mut response = Response::new(Body::from(serde_json::to_vec(pushed).unwrap_or_default()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The key, if one is given; the quotes that some write around it are no part of it.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<Key>, Problem> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let bad = || Problem::bad("bad-key", "an Idempotency-Key is given once, with 1 to 200 bytes of printable text");
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(bad()),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| bad())?.trim();
            let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
            Key::new(bare).map(Some).map_err(|_| bad())
        }
    }
}
