//! Bodies of requests as they arrive: bounded in length, time and depth. Compressed bodies are refused.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
};
use baton::admin::BadBody;
use http_body_util::BodyExt as _;
use tokio::time::{Duration, Instant, timeout_at};

use crate::{limits::Limits, problem::Problem, room::BytesPermit, state::State};

/// How much of a refused body is read so that its sender reads the answer, and how long that may take.
const REFUSED_BYTES: usize = 4 << 20;
const REFUSED_TIME: Duration = Duration::from_millis(500);

/// The kinds of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// One JSON text.
    Json,
    /// A JSON text a line.
    Lines,
}

/// The kind of the body, by the headers.
pub(crate) fn media(headers: &HeaderMap) -> Result<Media, Problem> {
    let unsupported = |code, detail: &str| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, detail));
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.into_iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return unsupported("encoded", "compressed bodies are not accepted; send the body without Content-Encoding");
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let kind = match (types.next(), types.next()) {
        (Some(kind), None) => kind.to_str().unwrap_or_default(),
        _ => "",
    };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => Ok(Media::Json),
        "application/x-ndjson" | "application/jsonl" => Ok(Media::Lines),
        _ => unsupported(
            "media-type",
            "send one message as Content-Type: application/json, many as application/x-ndjson, one a line",
        ),
    }
}

/// How many bytes a message may come to hold, by its headers.
pub(crate) fn awaited_bytes(limits: &Limits, headers: &HeaderMap) -> usize {
    declared(headers).map_or(limits.message_bytes, |declared| declared.min(limits.message_bytes))
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok())
}

/// Reads one message. Its bytes are held by the permit as they come in.
pub(crate) async fn read_message(
    state: &State, headers: &HeaderMap, mut body: Body, permit: &mut BytesPermit,
) -> Result<Bytes, Problem> {
    let Limits { message_bytes: most, body_time, .. } = state.limits;
    let declared = declared(headers);
    if declared.is_some_and(|declared| declared > most) {
        refuse(headers, body).await;
        return Err(too_large(most));
    }
    let deadline = Instant::now() + body_time;
    let Some(first) = next(&mut body, deadline, body_time).await? else { return Ok(Bytes::new()) };
    if declared == Some(first.len()) && permit.hold(first.len()).is_ok() {
        return Ok(first);
    }
    let mut whole = Vec::from(first);
    let refused = loop {
        if whole.len() > most {
            break too_large(most);
        }
        if let Err(busy) = permit.hold(whole.len()) {
            break busy;
        }
        let Some(more) = next(&mut body, deadline, body_time).await? else { return Ok(whole.into()) };
        whole.extend_from_slice(&more);
    };
    drop(whole);
    refuse(headers, body).await;
    Err(refused)
}

/// The next bytes of a body; nothing at its end.
pub(crate) async fn next(body: &mut Body, deadline: Instant, time: Duration) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| {
            let detail = format!("the message did not arrive within {} s", time.as_secs_f64());
            Problem::new(StatusCode::REQUEST_TIMEOUT, "slow-body", detail)
        })?;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => {
                return Err(Problem::bad("broken-body", "the body ended early, or does not match its headers"));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Ok(Some(bytes)),
                // Trailers say nothing here.
                Err(_) => {}
            },
        }
    }
}

/// Reads a part of a refused body: the answer is lost if a connection is closed with unread bytes.
pub(crate) async fn refuse(headers: &HeaderMap, mut body: Body) {
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let (deadline, mut left) = (Instant::now() + REFUSED_TIME, REFUSED_BYTES);
    while let Ok(Some(bytes)) = next(&mut body, deadline, REFUSED_TIME).await {
        match left.checked_sub(bytes.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

pub(crate) fn too_large(most: usize) -> Problem {
    let detail = format!("a message has at most {most} bytes: store larger data elsewhere, and push its address");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
}

/// Checks that these bytes are a JSON text that is not too deep, and gives them without the white space around it.
pub(crate) fn check<'a>(limits: &Limits, bytes: &'a [u8]) -> Result<&'a [u8], Problem> {
    let bytes = bytes.trim_ascii();
    if depth(bytes) > limits.depth {
        let detail = format!("arrays and objects are nested more than {} levels deep", limits.depth);
        return Err(Problem::bad("too-deep", detail));
    }
    match BadBody::check(bytes, limits.message_bytes) {
        Ok(_) => Ok(bytes),
        Err(BadBody::TooLarge { limit }) => Err(too_large(limit)),
        Err(bad) => Err(Problem::bad("bad-json", format!("the message {bad}"))),
    }
}

/// Checks a body that is one message, where many could be sent; a problem of several messages says how to send them.
pub(crate) fn check_one<'a>(limits: &Limits, bytes: &'a [u8]) -> Result<&'a [u8], Problem> {
    check(limits, bytes).map_err(|problem| match has_several(bytes) {
        true => problem.next("for many messages, one a line, send Content-Type: application/x-ndjson"),
        false => problem,
    })
}

/// Whether these are several JSON texts.
pub(crate) fn has_several(bytes: &[u8]) -> bool {
    let mut texts = serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>();
    matches!(texts.next(), Some(Ok(_))) && matches!(texts.next(), Some(Ok(_)))
}

/// How deep brackets lie in each other outside of strings, whether or not the rest is JSON.
fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                now += 1;
                most = most.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_brackets_outside_of_strings() {
        let depths = [r#"1"#, "[]", r#"{"a":[1,[2]],"b":[]}"#, r#"["[[[\"[[","]"]"#, "]]][[[", r#""\\"[[]]"#]
            .map(|it| depth(it.as_bytes()));
        assert_eq!(depths, [0, 1, 3, 1, 3, 2]);
    }

    #[test]
    fn only_json_of_its_bounds_is_a_message() {
        let limits = Limits { depth: 3, message_bytes: 20, ..Limits::default() };
        assert_eq!(check(&limits, b" {\"a\": [1]}\r\n").unwrap(), b"{\"a\": [1]}");
        let status = |bytes: &[u8]| check(&limits, bytes).unwrap_err().status().as_u16();
        let bad: [&[u8]; 6] = [b"", b"  ", b"{a}", b"[[[[1]]]]", b"\"\xff\"", b"1 2"];
        assert_eq!(bad.map(status), [400; 6]);
        assert_eq!(status(b"\"12345678901234567890\""), 413);
        let many = |bytes: &[u8]| check_one(&limits, bytes).unwrap_err().json()["detail"].to_string();
        assert!(many(b"{\"a\":1}\n{\"a\":2}").contains("application/x-ndjson"), "{}", many(b"1\n2"));
        assert!(!many(b"{\"a\":1}\n{").contains("application/x-ndjson"));
    }

    #[test]
    fn what_is_packed_or_of_another_kind_is_not_taken() {
        let of = |headers: &[(header::HeaderName, &str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name.clone(), value.parse().unwrap());
            }
            media(&map).map_err(|problem| problem.status().as_u16())
        };
        let kind = header::CONTENT_TYPE;
        assert_eq!(of(&[(kind.clone(), "Application/JSON; charset=utf-8")]), Ok(Media::Json));
        assert_eq!(of(&[(kind.clone(), "application/x-ndjson")]), Ok(Media::Lines));
        assert_eq!(of(&[(kind.clone(), "application/json"), (header::CONTENT_ENCODING, "identity")]), Ok(Media::Json));
        assert_eq!(of(&[(kind.clone(), "application/json"), (header::CONTENT_ENCODING, "gzip")]), Err(415));
        assert_eq!(of(&[(kind.clone(), "text/plain")]), Err(415));
        assert_eq!(of(&[(kind.clone(), "application/json"), (kind, "text/plain")]), Err(415));
        assert_eq!(of(&[]), Err(415));
    }
}
