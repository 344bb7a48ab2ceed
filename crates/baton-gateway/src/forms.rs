//! Events as bytes: for browsers, for programs, for people.
//!
//! What a form makes of events depends on nothing but them and their call, so that what was made for one follower is
//! sent to all.

use axum::http::HeaderValue;
use baton::{CallEvent, CallId, Chunk, admin::wording::tame};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

/// An event of a message, for the description of the routes.
///
/// As NDJSON each line is one; lines that are empty only show that the way is open and are to be skipped. As
/// server-sent events `id` is `queue/id@born:number`, `event` its name and `data` its data.
///
/// Handlers emit events with names of their own, e.g. `match` of a subset sum. Baton emits these: `restart`, the
/// message runs again, and its earlier events without an event key are void (data: the attempt); `part`, of a subset
/// sum that is split, one of its parts has ended (data: `count`, `complete`); `gap`, events before the number `next` in
/// its data are not kept any more; `closing`, of NDJSON alone, the gateway stops, and `next` in its data is the number
/// to go on from; `waiting`, of NDJSON alone, the message waits, and `why` in its data says for what (server-sent
/// events say that in a comment). The last is one of `end` (data: the result), `error` (data: `message`, the cause in
/// one line, or a problem of the gateway itself) and `cancelled`.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventShape {
    /// Its number among the events of the message, from 1: `from` names the first that is wanted. None for `gap`,
    /// `closing`, `waiting` and problems of the gateway, nor for a subset sum in the mode `interleaved`.
    number: Option<u64>,
    /// Its name.
    event: String,
    /// In a call of several messages: the message that emitted it, as `queue/id@born`; none for the first.
    message: Option<String>,
    /// Any JSON.
    #[schema(value_type = Value)]
    data: Value,
}

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Server-sent events, whose ids are `queue/id@born:number`.
    Events,
    /// A JSON object a line.
    Lines,
    /// A line of text for each match of a subset sum.
    Matches,
    /// A line of text with how many matches of a subset sum there are.
    Count,
}

impl Form {
    /// Its media type.
    pub(crate) const fn media(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
            Self::Matches | Self::Count => "text/plain",
        }
    }

    /// The value of the header `Content-Type`.
    pub(crate) const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
            Self::Matches | Self::Count => "text/plain; charset=utf-8",
        })
    }

    /// Whether one who reads it can go on after a cut.
    pub(crate) const fn has_numbers(self) -> bool {
        !matches!(self, Self::Matches | Self::Count)
    }

    /// Events, made once for all who follow their call in this form.
    pub(crate) fn chunk(self, call: &CallId, chunk: &Chunk) -> Bytes {
        chunk.encoded(self as usize, |chunk| {
            let mut bytes = BytesMut::with_capacity(chunk.events().iter().map(|it| it.data.len() + 96).sum());
            chunk.numbered().for_each(|(number, event)| self.event(&mut bytes, call, number, event));
            bytes.freeze()
        })
    }

    fn event(self, bytes: &mut BytesMut, call: &CallId, number: u64, event: &CallEvent) {
        let name = event.event.as_str();
        match self {
            Self::Events => {
                bytes.extend_from_slice(format!("id: {call}:{number}\nevent: {name}\ndata: ").as_bytes());
                data(bytes, &event.data);
                bytes.extend_from_slice(b"\n\n");
            }
            Self::Lines => {
                let of = event.message.as_ref().map(|of| format!("\"message\":\"{of}\",")).unwrap_or_default();
                bytes.extend_from_slice(format!("{{\"number\":{number},\"event\":\"{name}\",{of}\"data\":").as_bytes());
                data(bytes, &event.data);
                bytes.extend_from_slice(b"}\n");
            }
            Self::Matches | Self::Count => self.text(bytes, name, &event.data),
        }
    }

    /// An event of a search in this process. It has no number: such a search cannot be gone on with after a cut.
    pub(crate) fn unnumbered(self, name: &str, json: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(json.len() + 32);
        match self {
            Self::Events => {
                bytes.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
                data(&mut bytes, json);
                bytes.extend_from_slice(b"\n\n");
            }
            Self::Lines => {
                bytes.extend_from_slice(format!("{{\"event\":\"{name}\",\"data\":").as_bytes());
                data(&mut bytes, json);
                bytes.extend_from_slice(b"}\n");
            }
            Self::Matches | Self::Count => self.text(&mut bytes, name, json),
        }
        bytes.freeze()
    }

    /// An event of a subset sum as a line for people, if it is one for them.
    fn text(self, bytes: &mut BytesMut, name: &str, json: &[u8]) {
        let said = || serde_json::from_slice::<Value>(json).unwrap_or_default();
        match name {
            "end" if self == Self::Count => {
                let count = said().get("count").and_then(Value::as_u64).unwrap_or_default();
                bytes.extend_from_slice(format!("Count: {count}\n").as_bytes());
            }
            "match" => {
                bytes.extend_from_slice(b"Match: ");
                data(bytes, json);
                bytes.extend_from_slice(b"\n");
            }
            "error" => {
                let said = said();
                let said = said.get("message").and_then(Value::as_str).unwrap_or("failed");
                let flat: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                bytes.extend_from_slice(format!("Error: {}\n", tame(&flat)).as_bytes());
            }
            "cancelled" => bytes.extend_from_slice(b"Error: cancelled\n"),
            _ => {}
        }
    }

    /// The first bytes: the pause before a browser connects again, with jitter.
    pub(crate) fn greeting(self) -> Bytes {
        match self {
            Self::Events => {
                let mut chance = [0; 2];
                // Without jitter all connect at once, which does no harm to one of them.
                getrandom::fill(&mut chance).ok();
                format!("retry: {}\n\n", 1000 + u32::from(u16::from_le_bytes(chance)) % 3000).into()
            }
            Self::Lines | Self::Matches | Self::Count => Bytes::new(),
        }
    }

    /// Something that is no event, to show that the way is open; nothing where people read.
    pub(crate) const fn breath(self) -> Bytes {
        match self {
            Self::Events => Bytes::from_static(b": still here\n\n"),
            Self::Lines => Bytes::from_static(b"\n"),
            Self::Matches | Self::Count => Bytes::new(),
        }
    }

    /// Why a call that has told nothing yet waits; nothing where people read.
    pub(crate) fn waiting(self, why: &str) -> Bytes {
        match self {
            Self::Events => format!(": waiting: {why}\n\n").into(),
            Self::Lines => format!("{{\"event\":\"waiting\",\"data\":{}}}\n", json!({ "why": why })).into(),
            Self::Matches | Self::Count => Bytes::new(),
        }
    }

    /// That events before this number are not kept any more.
    pub(crate) fn gap(self, call: &CallId, next: u64) -> Bytes {
        match self {
            // With the id of the last event lost, a browser that connects again goes on behind it.
            Self::Events => {
                let lost = next.saturating_sub(1);
                format!("id: {call}:{lost}\nevent: gap\ndata: {{\"next\":{next}}}\n\n").into()
            }
            Self::Lines => format!("{{\"event\":\"gap\",\"data\":{{\"next\":{next}}}}}\n").into(),
            Self::Matches | Self::Count => Bytes::from_static(b"Gap: some matches were not kept long enough\n"),
        }
    }

    /// A failure of the gateway itself, as problem details.
    pub(crate) fn failure(self, problem: &Value) -> Bytes {
        match self {
            Self::Events => format!("event: error\ndata: {problem}\n\n").into(),
            Self::Lines => format!("{{\"event\":\"error\",\"data\":{problem}}}\n").into(),
            Self::Matches | Self::Count => {
                let detail = problem.get("detail").and_then(Value::as_str).unwrap_or("failed");
                format!("Error: {detail}\n").into()
            }
        }
    }

    /// That the gateway stops, and from where on events are still to be read, here or elsewhere.
    pub(crate) fn farewell(self, next: Option<u64>) -> Bytes {
        match self {
            Self::Events => Bytes::from_static(b": the gateway stops; connect again\n\n"),
            Self::Lines => {
                let next = next.map_or(Value::Null, Value::from);
                format!("{{\"event\":\"closing\",\"data\":{{\"next\":{next}}}}}\n").into()
            }
            Self::Matches | Self::Count => Bytes::from_static(b"Error: the gateway stops\n"),
        }
    }
}

/// JSON in one line: between its tokens, and only there, may be ends of lines.
fn data(bytes: &mut BytesMut, json: &[u8]) {
    let from = bytes.len();
    bytes.extend_from_slice(json);
    let written = bytes.get_mut(from..).unwrap_or_default();
    written.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}
