//! One error, for a person or for a program.

use baton::{message::Name, store::DeadMessage};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    exit::Failure,
    output::{Ink, Output, moment, plural, tame},
};

#[derive(Serialize)]
struct Entry<'a> {
    id: u64,
    queue: &'a str,
    body: Box<RawValue>,
    error: &'a str,
    attempts: u32,
    losses: u32,
    node: &'a str,
    /// Milliseconds since 1970.
    at: u64,
}

pub(super) fn write(output: &mut Output, queue: &Name, it: &DeadMessage, json: bool) -> Result<(), Failure> {
    if json {
        return output.json(&Entry {
            id: it.id,
            queue: queue.as_str(),
            body: value(&it.body)?,
            error: &it.error,
            attempts: it.attempts,
            losses: it.losses,
            node: &it.node,
            at: it.at,
        });
    }
    let head = format!("{queue}/{}", it.id);
    let tries =
        format!("{} attempt{}, {} loss{}", it.attempts, plural(it.attempts.into()), it.losses, losses(it.losses));
    let about = format!("{}  {}  {tries}", moment(it.at), tame(&it.node));
    output.line(&format!("{}  {}", output.paint(Ink::Red, &head), output.paint(Ink::Faint, &about)))?;
    for (number, line) in it.error.lines().enumerate() {
        output.line(&format!("  {}{}", if number == 0 { "error: " } else { "       " }, tame(line)))?;
    }
    let body = if it.body.is_empty() { "(missing)".into() } else { String::from_utf8_lossy(&it.body) };
    output.line(&format!("  body:  {}", tame(&body)))
}

const fn losses(count: u32) -> &'static str {
    if count == 1 { "" } else { "es" }
}

/// The body as the JSON value it is, on one line; as a text if it is none, and null if it is missing.
fn value(body: &[u8]) -> Result<Box<RawValue>, Failure> {
    let body = if body.is_empty() { b"null" } else { body };
    // Line breaks stand between tokens only: inside a JSON string they are always escaped.
    let line = || body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    let raw = String::from_utf8(line()).ok().and_then(|line| RawValue::from_string(line).ok());
    raw.map_or_else(|| serde_json::value::to_raw_value(&String::from_utf8_lossy(body)), Ok)
        .map_err(|error| Failure::new(format!("cannot write a body: {error}"), "leave --json out to see it"))
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
