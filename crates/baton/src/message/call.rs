//! Calls: messages whose caller follows what becomes of them.
//!
//! A call is known by its first message. Further messages may join it as follow-ups. What its messages tell are events,
//! kept in the order of a sequence that belongs to the call.
//!
//! ```text
//! event = flags u8 | name length u8 | name | message length u8, message if flag 2 | key length u8, key if flag 1 | data
//! ```

use std::{fmt, str::FromStr};

use bytes::{BufMut, Bytes, BytesMut};

use super::{InvalidMessage, Key, MessageId, Name};

/// The header of a message that has joined a call: which one, as text.
pub const CALL: u8 = 2;

/// The longest data of an event.
pub const MAX_EVENT_BYTES: usize = 64 << 10;

/// Whether an event has a key; and whether it is of a message that has joined.
const KEYED: u8 = 1;
const OF_MESSAGE: u8 = 2;

/// A call: the queue, the id and the birth of its first message. As text `queue/id@born`, or `queue/id` without the birth.
///
/// Ids begin again when a store has lost its data. The birth tells the message that was meant from a later one with its id:
/// a store refuses to speak of another message ([`Refusal::OtherCall`](crate::store::Refusal::OtherCall)).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The queue.
    pub queue: Name,
    /// The id there.
    pub id: MessageId,
    /// The store's time of its push, in milliseconds. Without it, this names the message that has the id now, as people do
    /// who look by hand.
    pub born: Option<u64>,
}

impl CallId {
    /// The name under which stores file it: ids are unique in a store, so that needs no birth.
    pub(crate) fn place(&self) -> Self {
        Self { born: None, ..self.clone() }
    }

    /// Whether the message of this id that was born then is meant.
    #[cfg(feature = "memory")]
    pub(crate) fn means(&self, born: u64) -> bool {
        self.born.is_none_or(|meant| meant == born)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.id.0)?;
        self.born.map_or(Ok(()), |born| write!(f, "@{born}"))
    }
}

impl FromStr for CallId {
    type Err = InvalidMessage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidMessage::Call(text.chars().take(80).collect());
        let (queue, message) = text.split_once('/').ok_or_else(invalid)?;
        let (id, born) = match message.split_once('@') {
            Some((id, born)) => (id, Some(number(born).ok_or_else(invalid)?)),
            None => (message, None),
        };
        let id = number(id).filter(|id| *id > 0).ok_or_else(invalid)?;
        Ok(Self { queue: Name::new(queue).map_err(|_| invalid())?, id: MessageId(id), born })
    }
}

/// A number in digits alone that ids and times may have.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_number && *number <= MessageId::MAX.0)
}

/// What a message is to the call it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallRole {
    /// Its first message, by which it is known.
    First,
    /// A follow-up that has joined it.
    Joined,
}

/// What a submission is to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calling {
    /// Its message begins a call.
    Begins {
        /// After so many milliseconds without a follower the call is cancelled; nothing if it goes on without.
        linger_ms: Option<u64>,
        /// Whether the key of the submission stands for a call only while that has not ended: then the next one is a new call.
        share: bool,
    },
    /// Its message, a follow-up, joins the call of the message that brings it; if that is of none, it is a plain one.
    Joins,
}

/// Something that a call has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEvent {
    /// What it is called. The handler's own, or one of [`RESTART`], [`END`], [`ERROR`], [`CANCELLED`].
    pub event: Name,
    /// Which of the messages told it, if that is not the first.
    pub message: Option<CallId>,
    /// The handler's key, if it gave one: there is one event of a key in a call.
    pub key: Option<Key>,
    /// JSON.
    pub data: Bytes,
}

/// A message is run again: what it told without a key before is void. Data: which attempt this is.
pub const RESTART: &str = "restart";
/// The call has ended well. Data: the result of its first message, or `null`.
pub const END: &str = "end";
/// A message of the call has failed for good. Data: `{"message": why}`, with the first line of it alone.
pub const ERROR: &str = "error";
/// The call was cancelled. Data: `null`.
pub const CANCELLED: &str = "cancelled";
/// What those who stream events tell themselves, of a gap and that they stop: no handler's event is called so.
const OF_STREAMS: [&str; 2] = ["gap", "closing"];

/// Whether handlers cannot use this name for an event of theirs.
pub(crate) fn is_reserved(event: &str) -> bool {
    [RESTART, END, ERROR, CANCELLED].contains(&event) || OF_STREAMS.contains(&event)
}

impl CallEvent {
    /// Whether nothing follows it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        [END, ERROR, CANCELLED].contains(&self.event.as_str())
    }

    /// The event as it is stored; `data` as the one who writes it has it.
    pub(crate) fn bytes(event: &str, message: Option<&CallId>, key: Option<&Key>, data: &[u8]) -> Bytes {
        let message = message.map(ToString::to_string);
        let mut bytes = BytesMut::with_capacity(2 + event.len() + data.len() + 80);
        bytes.put_u8(u8::from(key.is_some()) * KEYED + u8::from(message.is_some()) * OF_MESSAGE);
        // Names have at most 64 bytes, ids and births 16 digits, keys 200 bytes.
        for text in [Some(event), message.as_deref(), key.map(Key::as_str)].into_iter().flatten() {
            bytes.put_u8(u8::try_from(text.len()).unwrap_or(u8::MAX));
            bytes.put_slice(text.as_bytes());
        }
        bytes.put_slice(data);
        bytes.freeze()
    }

    /// Reads a stored event, with data as JSON.
    ///
    /// # Errors
    /// [`InvalidMessage::Event`] if it is none.
    pub(crate) fn parse(bytes: &Bytes) -> Result<Self, InvalidMessage> {
        let mut rest = bytes.clone();
        let flags = take(&mut rest, 1)?.first().copied().unwrap_or(0);
        let event = Name::new(&text(&mut rest)?)?;
        let message = (flags & OF_MESSAGE != 0).then(|| text(&mut rest)?.parse()).transpose()?;
        let key = (flags & KEYED != 0).then(|| Key::new(&text(&mut rest)?)).transpose()?;
        let data = match event.as_str() {
            // As the message's failure tells it: a text that nobody wrote as JSON.
            ERROR => error_data(&String::from_utf8_lossy(&rest)),
            _ if rest.is_empty() => Bytes::from_static(b"null"),
            _ => rest,
        };
        Ok(Self { event, message, key, data })
    }
}

/// The first line of an error that says something: what whoever calls is told. The rest, as the last lines that a program
/// printed, is for those who operate the fleet.
pub(crate) fn cause(why: &str) -> &str {
    why.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The data of an [`ERROR`].
fn error_data(why: &str) -> Bytes {
    serde_json::json!({ "message": cause(why) }).to_string().into()
}

fn take(bytes: &mut Bytes, len: usize) -> Result<Bytes, InvalidMessage> {
    if len > bytes.len() { Err(InvalidMessage::Event) } else { Ok(bytes.split_to(len)) }
}

fn text(bytes: &mut Bytes) -> Result<String, InvalidMessage> {
    let len = take(bytes, 1)?.first().copied().unwrap_or(0);
    String::from_utf8(take(bytes, usize::from(len))?.into()).map_err(|_| InvalidMessage::Event)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn a_call_is_its_queue_id_and_birth() {
        for (text, born) in [("emails:high/17", None), ("emails:high/17@1700000000123", Some(1_700_000_000_123))] {
            let call: CallId = text.parse().unwrap();
            assert_eq!((call.queue.as_str(), call.id.0, call.born), ("emails:high", 17, born));
            assert_eq!((call.to_string().as_str(), call.place().to_string().as_str()), (text, "emails:high/17"));
        }
        let all = ["", "q", "q/", "/1", "q/0", "q/-1", "q/+1", "q/1/2", "q/x", "q/99999999999999999", "q/1@", "q/@1"];
        for bad in all.into_iter().chain(["q/1@x", "q/1@-1", "q/1@1@1", "q/1@99999999999999999"]) {
            assert!(bad.parse::<CallId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_stores_write_is_read_as_json() {
        let read = |event: &str, data: &[u8]| CallEvent::parse(&CallEvent::bytes(event, None, None, data)).unwrap();
        assert_eq!(read(END, b"").data, "null");
        assert_eq!(read(END, b"[1]").data, "[1]");
        assert_eq!(read(ERROR, b"said \"no\"").data, r#"{"message":"said \"no\""}"#);
        assert_eq!(read(ERROR, b"\n it broke\nTraceback\n").data, r#"{"message":"it broke"}"#);
        assert!(read(CANCELLED, b"").is_last() && !read(RESTART, b"2").is_last());
        assert!(is_reserved("gap") && !is_reserved("match"));
    }

    proptest! {
        #[test]
        fn events_come_back(
            key in proptest::option::of("[a-z0-9]{1,200}"), of in any::<bool>(), data in "\\{\"n\":[0-9]{1,9}\\}",
        ) {
            let message: Option<CallId> = of.then(|| "parts/9@1700000000123".parse().unwrap());
            let key = key.map(|key| Key::new(&key).unwrap());
            let bytes = CallEvent::bytes("match", message.as_ref(), key.as_ref(), data.as_bytes());
            let event = CallEvent::parse(&bytes).unwrap();
            prop_assert_eq!(event, CallEvent { event: Name::new("match").unwrap(), message, key, data: data.into() });
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..60)) {
            CallEvent::parse(&Bytes::from(bytes)).ok();
        }
    }
}
