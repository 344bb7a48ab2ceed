//! One error, for a program.

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    message::{MessageId, Name},
    store::ErrorRecord,
};

/// A message that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedMessage {
    /// Its id within its queue.
    pub id: MessageId,
    /// Its queue.
    pub queue: Name,
    /// Its body; empty if that is missing. Serialized as the JSON value it is, on one line; as a text if it is none, and
    /// as null if it is missing.
    #[serde(serialize_with = "body")]
    pub body: Bytes,
    /// Why it failed.
    pub error: String,
    /// Why the attempt before failed, if there was one that was retried and told: at most 1 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Attempts that ended with an error.
    pub attempts: u32,
    /// Sessions that died with it.
    pub crashes: u32,
    /// Where it ran last, as `host/pid`.
    pub node: String,
    /// When it failed, in milliseconds since 1970.
    pub at: u64,
}

impl FailedMessage {
    pub(super) fn of(queue: &Name, it: ErrorRecord) -> Self {
        let ErrorRecord { id, attempts, crashes, at, node, error, headers, body, .. } = it;
        let last_error = headers.last_error();
        Self { id, queue: queue.clone(), body, error, last_error, attempts, crashes, node, at }
    }
}

fn body<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    value(body).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

fn value(body: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    let body = if body.is_empty() { b"null" } else { body };
    // Line breaks stand between tokens only: inside a JSON string they are always escaped.
    let line = || body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    let raw = String::from_utf8(line()).ok().and_then(|line| RawValue::from_string(line).ok());
    raw.map_or_else(|| serde_json::value::to_raw_value(&String::from_utf8_lossy(body)), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_stay_values_on_one_line() {
        let shown = |body: &[u8]| value(body).unwrap().get().to_owned();
        assert_eq!(shown(b"{\"a\":\n 1.50}"), "{\"a\":  1.50}");
        assert_eq!(shown(b"123456789012345678901234567890"), "123456789012345678901234567890");
        assert_eq!(shown(b""), "null");
        assert_eq!(shown(b"not json \xff"), "\"not json \u{fffd}\"");
    }
}
