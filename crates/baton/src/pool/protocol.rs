//! The protocol between a pool and its children: one JSON object a line.
//!
//! To the child: `{"id":7,"key":"resize/7@1763300000000","queue":"resize","attempt":1,"crashes":0,"body":…}`. From it, any number of
//! events `{"event":"progress","data":…}`, and then one of `{"event":"end","data":…}` and
//! `{"event":"error","message":"…","fatal":true}`; `data` and `fatal` may be left out. An event may have a `key`, by which
//! it is one and the same in every attempt. A line may repeat the `id`, which must then be that of the task. An empty line
//! is a keep-alive: it keeps [`Limits::output_timeout`](super::Limits::output_timeout) from running out.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::PoolError;

/// Characters of a wrong line that an error quotes.
const SHOWN: usize = 200;

/// A task for a child.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Its number, which the child may repeat.
    pub id: u64,
    /// The key by which the child can make its effects idempotent.
    pub key: &'a str,
    /// The queue it comes from.
    pub queue: &'a str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of nodes that died with it since its last attempt that ended.
    pub crashes: u32,
    /// Its call, if it has one whose events can be followed.
    pub call: Option<&'a str>,
    /// JSON.
    pub body: &'a [u8],
}

impl Task<'_> {
    /// Appends it as a line.
    pub(super) fn write(&self, line: &mut Vec<u8>) {
        let Self { id, key, queue, attempt, crashes, call, body } = self;
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let (key, queue) = (text(key), text(queue));
        let call = call.map(|call| format!(r#""call":{},"#, text(call))).unwrap_or_default();
        line.extend_from_slice(
            format!(r#"{{"id":{id},"key":{key},"queue":{queue},"attempt":{attempt},"crashes":{crashes},{call}"body":"#)
                .as_bytes(),
        );
        // In a JSON text, line ends stand only between tokens.
        line.extend(body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        line.extend_from_slice(b"}\n");
    }
}

/// An event of a child before its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The kind of the event.
    pub name: Cow<'a, str>,
    /// The key by which it is the same in every attempt, if it has one.
    pub key: Option<Cow<'a, str>>,
    /// JSON, if it has any.
    pub data: Option<&'a str>,
}

/// A line of a child.
#[derive(Debug)]
pub(super) enum Said<'a> {
    /// An event before the answer.
    Event(Event<'a>),
    /// It is finished.
    End { data: Option<&'a RawValue> },
    /// It failed.
    Error { message: String, fatal: bool },
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default)]
    fatal: bool,
}

/// Reads a line, without its end, of a child that has task `given`.
pub(super) fn read(line: &[u8], given: u64) -> Result<Said<'_>, PoolError> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(PoolError::NoEvent { line: shown(line), why: None });
    }
    let Line { event, id, data, key, message, fatal } = serde_json::from_slice(line)
        .map_err(|error| PoolError::NoEvent { line: shown(line), why: Some(error.to_string()) })?;
    if let Some(id) = id.filter(|id| id.get().trim_matches('"').parse() != Ok(given)) {
        return Err(PoolError::OtherTask { answered: shown(id.get().as_bytes()), given });
    }
    Ok(match &*event {
        "end" => Said::End { data },
        "error" => {
            let message = message.filter(|message| !message.trim().is_empty());
            let message = message.map_or_else(|| "the child reported an error without a message".to_owned(), Cow::into);
            Said::Error { message, fatal }
        }
        _ => Said::Event(Event { name: event, key, data: data.map(RawValue::get) }),
    })
}

/// The first unknown field of a line, if it has one.
pub(super) fn odd_field(line: &[u8]) -> Option<String> {
    let fields: BTreeMap<Cow<'_, str>, IgnoredAny> = serde_json::from_slice(line).ok()?;
    let known = ["event", "id", "data", "key", "message", "fatal"];
    fields.into_keys().find(|field| !known.contains(&&**field)).map(|field| shown(field.as_bytes()))
}

/// The beginning of a line, for people.
pub(super) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        read(line.as_bytes(), 7).unwrap_err().to_string()
    }

    #[test]
    fn a_task_is_one_line_whatever_its_body() {
        let mut line = Vec::new();
        let body = b"{\n\"a\": \"x\\ny\"\r\n}";
        let task = Task { id: 7, key: "q/7@1", queue: "q", attempt: 2, crashes: 1, call: None, body };
        task.write(&mut line);
        let text = std::str::from_utf8(&line).unwrap();
        assert_eq!(text.lines().count(), 1);
        let read: serde_json::Value = serde_json::from_str(text).unwrap();
        let whole = serde_json::json!({
            "id": 7, "key": "q/7@1", "queue": "q", "attempt": 2, "crashes": 1, "body": {"a": "x\ny"}
        });
        assert_eq!(read, whole);
        line.clear();
        Task { call: Some("q/7"), ..task }.write(&mut line);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&line).unwrap()["call"], "q/7");
    }

    #[test]
    fn lines_are_read_and_wrong_ones_told() {
        assert!(matches!(read(br#"{"event":"end"}"#, 7), Ok(Said::End { data: None })));
        let Ok(Said::End { data: Some(data) }) = read(br#"{"id":"7","event":"end","data":{"a":[1]}}"#, 7) else {
            panic!("no end")
        };
        assert_eq!(data.get(), r#"{"a":[1]}"#);
        let Ok(Said::Event(event)) = read(br#"{"event":"m\u0061tch","data":3,"id":7,"key":"a"}"#, 7) else {
            panic!("no event")
        };
        assert_eq!(event, Event { name: "match".into(), key: Some("a".into()), data: Some("3") });
        let error = read(br#"{"event":"error","message":"no\nway","fatal":true}"#, 7).unwrap();
        assert!(matches!(error, Said::Error { message, fatal: true } if message == "no\nway"));
        let odd = |line: &str| odd_field(line.as_bytes());
        assert_eq!(odd(r#"{"event":"end","id":7,"result":{"a":1}}"#).as_deref(), Some("result"));
        assert_eq!(odd(r#"{"event":"end","id":7}"#), None);
        assert!(refused(r#"{"event":"end","id":8}"#).contains("answered task 8, but was given 7"));
        let advice = "; print what is for people on standard error (Python: print(…, file=sys.stderr))";
        assert_eq!(refused("hello"), format!("the child printed a line that is no answer: `hello`{advice}"));
        assert!(refused("[\"end\",7,null]").contains("`[\"end\",7,null]`; print"));
        let missing = refused(r#"{"data":1}"#);
        assert!(missing.contains(r#"`{"data":1}` (missing field `event`"#) && missing.ends_with(advice), "{missing}");
        assert!(refused(&"x".repeat(1_000)).len() < 500);
    }
}
