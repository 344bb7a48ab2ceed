//! Messages whose caller follows their events.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, Response},
    routing::{MethodRouter, post},
};
use baton::{CallOptions, Key, Since};
use tokio::time::Duration;

use super::{
    OfQueue,
    push::{KEY_HEADERS, idempotency_key},
    query::Query,
};
use crate::{
    admission::Admission,
    body::{Media, awaited_bytes, check, media, read_message, refuse},
    following::Streaming,
    forms::Form,
    gate::Operates,
    negotiation,
    problem::{Problem, ProblemShape},
    state::Shared,
};

pub(super) const SHARE: &str = "baton-share";
pub(super) const LINGER: &str = "baton-linger";
/// The longest that a call goes on without a follower if it does not go on for ever, in seconds.
const LONGEST_LINGER: u64 = 3600;

pub(super) fn routes() -> MethodRouter<Shared> {
    post(call)
}

/// Push a message and follow it
///
/// The answer is the stream of its events, up to the last: `end`, `error` or `cancelled`. After a cut it is gone on
/// with at the `events` of the message that `Location` names. They come as NDJSON, an `Event` a line, which is also for who
/// accepts `application/json` or anything, or as server-sent events for who accepts `text/event-stream`. In NDJSON
/// empty lines, one after 15 s without an event, are to be skipped.
#[utoipa::path(post, path = "/call/{queue}", tag = "messages",
    params(
        ("queue" = String, Path, pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,64}$"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and body again are the same message, for a day", min_length = 1, max_length = 200),
        ("Baton-Share" = Option<String>, Header, description = "`1`: equal bodies are one message as long as it has not ended; who joins late reads its events from the first", pattern = "^1$"),
        ("Baton-Linger" = Option<u64>, Header, description = "Seconds without a follower after which the message is cancelled", maximum = 3600)),
    request_body(content((serde_json::Value = "application/json"))),
    responses(
        (status = 200, description = "Events as they are emitted", content((String = "application/x-ndjson"), (String = "text/event-stream")), headers(("Location" = String, description = "The message"))),
        (status = 400, description = "No JSON, too deep, no queue, or a query", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token does not allow it, or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "The queues of the fleet are described, and this is none of them, not stored, and no live node works for it: the name is probably mistyped", body = ProblemShape, content_type = "application/problem+json"),
        (status = 406, description = "Neither form is accepted", body = ProblemShape, content_type = "application/problem+json"),
        (status = 408, description = "The message took too long to come in", body = ProblemShape, content_type = "application/problem+json"),
        (status = 413, description = "The message is too long", body = ProblemShape, content_type = "application/problem+json"),
        (status = 415, description = "Not JSON, or packed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 422, description = "The key was used with another body", body = ProblemShape, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away and did not answer in time; with the code `maybe-stored` the message may be stored", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn call(
    _: Operates, State(state): State<Shared>, OfQueue(queue): OfQueue, admission: Admission, RawQuery(query): RawQuery,
    headers: HeaderMap, body: Body,
) -> Result<Response<Body>, Problem> {
    let wanted = async || {
        Query::none(query.as_deref(), &KEY_HEADERS)?;
        let (form, options) = wanted_of(&headers)?;
        state.check_queue(&queue).await?;
        Ok((form, options, state.seat(awaited_bytes(&state.limits, &headers))?))
    };
    let (form, options, mut seat) = match wanted().await {
        Ok(wanted) => wanted,
        Err(problem) => {
            refuse(&headers, body).await;
            return Err(problem);
        }
    };
    let mut permit = admission.bytes(&state.room);
    let bytes = read_message(&state, &headers, body, &mut permit).await?;
    let message = check(&state.limits, &bytes)?;
    // Once it is stored there is no refusal any more.
    let place = state.room.stream()?;
    let (call, _) = state.store_call(&mut seat, &queue, message, &options).await?;
    Ok(Streaming { call, since: Since::Start, form, forsaken: false, limit: None }.respond(&state, &admission, place))
}

/// Whether equal bodies are to be one message.
pub(super) fn is_shared(headers: &HeaderMap, key: Option<&Key>) -> Result<bool, Problem> {
    match headers.get(SHARE).map(|it| it.as_bytes()) {
        None => Ok(false),
        Some(b"1") if key.is_some() => {
            let detail = "a message is known by its Idempotency-Key or shared by its body: send one of the two headers";
            Err(Problem::bad("bad-share", detail))
        }
        Some(b"1") => Ok(true),
        Some(_) => Err(Problem::bad("bad-share", "Baton-Share is 1, or left out")),
    }
}

fn wanted_of(headers: &HeaderMap) -> Result<(Form, CallOptions), Problem> {
    if media(headers)? != Media::Json {
        let detail = "a call is one message; push many to /push as application/x-ndjson";
        return Err(Problem::new(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
    }
    let form = negotiation::form(headers, &[Form::Lines, Form::Events])?;
    let key = idempotency_key(headers)?;
    let share = is_shared(headers, key.as_ref())?;
    let linger = match headers.get(LINGER).map(|it| it.to_str().ok().and_then(|text| text.parse::<u64>().ok())) {
        None => None,
        Some(Some(seconds)) => Some(Duration::from_secs(seconds.clamp(1, LONGEST_LINGER))),
        Some(None) => return Err(Problem::bad("bad-linger", "Baton-Linger is a number of seconds")),
    };
    Ok((form, CallOptions { key, share, linger }))
}
