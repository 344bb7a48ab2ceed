//! Reading events without following.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use crate::{
    message::{CallId, SessionId},
    store::Facts,
};

/// Reads events of a call. Nobody waits for whoever reads like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEvents {
    /// The call.
    pub call: CallId,
    /// The first event wanted; 1 is the first of all.
    pub from: u64,
    /// Bytes of events, though at least one is given if there is one.
    pub max_bytes: u64,
}

/// Events of a call in their order, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The number of the first of them.
    pub from: u64,
    /// Each with the number behind the one before.
    pub events: Vec<Bytes>,
    /// The number that the next event of the call gets.
    pub next: u64,
    /// Whether there will be no further event.
    pub ended: bool,
}

impl Facts for ReadEvents {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
