//! Emitting: a message that is being run tells something to those who follow its call.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use super::malformed;
use crate::{
    message::{Key, MAX_EVENT_BYTES, MessageId, Name, SessionId},
    store::{Facts, StoreError},
};

/// Adds events to the log of a call. Serial for each time that the message is held: the number behind the last one
/// executes, those before have been kept, and are not kept again. What nobody has read yet is not dropped for it
/// unless it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emit {
    /// Who runs the message.
    pub session: SessionId,
    /// The claim that holds it.
    pub claim_no: u64,
    /// Its queue.
    pub queue: Name,
    /// The message.
    pub id: MessageId,
    /// The number of the first of the events: 1, 2, 3 … since it was claimed.
    pub number: u64,
    /// What it tells, at most [`MAX_EVENTS`].
    pub events: Vec<NewEvent>,
    /// Bytes that the log of a call may hold, each event counting for [`AN_EVENT`] more; [`MAX_LOG`] unless somebody
    /// says otherwise.
    pub max_log: u64,
    /// Whether it has waited long enough for followers: what is oldest goes although nobody has read it.
    pub force: bool,
}

/// An event on its way into a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// If the call has told an event of this key before, it is not kept again.
    pub key: Option<Key>,
    /// The event as it is stored.
    pub bytes: Bytes,
}

/// The answer to [`Emit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emitted {
    /// They are kept, or were before.
    Kept,
    /// The log is full of what no follower has read: nothing was kept.
    Full,
}

/// The most events in one [`Emit`].
pub const MAX_EVENTS: usize = 256;
/// The most bytes of them, though one is taken in any case.
pub(crate) const MAX_EMIT_BYTES: usize = 256 << 10;
/// What an event counts for beyond its bytes.
pub const AN_EVENT: u64 = 64;
/// Bytes that the log of a call holds before what was read first goes.
pub const MAX_LOG: u64 = 4 << 20;
/// Bytes that the keys of a call's events may have together.
pub const MAX_EMIT_KEYS: u64 = 16 << 20;
/// The bytes of an event beside its data, at most.
const BESIDE_DATA: usize = 512;

impl Facts for Emit {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.events.is_empty() || self.events.len() > MAX_EVENTS || self.number == 0 {
            return malformed("an emit takes 1 to 256 events and a number above 0");
        }
        if self.events.iter().any(|event| event.bytes.len() > MAX_EVENT_BYTES + BESIDE_DATA) {
            return malformed("an event has at most 64 KiB");
        }
        let bytes: usize = self.events.iter().map(|event| event.bytes.len()).sum();
        if self.events.len() > 1 && bytes > MAX_EMIT_BYTES {
            return malformed("the events of an emit have at most 256 KiB");
        }
        Ok(())
    }

    fn new_bodies(&self) -> Option<usize> {
        Some(self.events.iter().map(|event| event.bytes.len()).sum())
    }
}
