//! Reading how a call stands.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use crate::{
    message::{CallId, SessionId},
    store::Facts,
};

/// Reads how a call stands; nothing if there is none of this name, or it is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    /// The call.
    pub call: CallId,
}

/// How a call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallView {
    /// Its state.
    pub state: CallState,
    /// The store's time of the push of its first message, in milliseconds.
    pub born: u64,
    /// Of one that is done the result of its first message, of one that failed why.
    pub outcome: Option<Bytes>,
    /// The first event that is kept.
    pub first: u64,
    /// The number that the next event gets.
    pub next: u64,
}

/// The states of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallState {
    /// One of its messages can be claimed, and none is claimed.
    Ready,
    /// All of its messages wait for their next attempt.
    Delayed,
    /// A message is claimed.
    InFlight,
    /// It was cancelled, and not all of its messages know.
    Cancelling,
    /// All of its messages are done.
    Done,
    /// A message has failed for good.
    Failed,
    /// It was cancelled before all was done.
    Cancelled,
}

impl CallState {
    /// Whether it stays as it is.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// How long a call is kept after its last message has ended, unless newer ones need its room.
pub const CALL_TTL_MS: u64 = 3_600_000;
/// What a call that has ended counts for, beyond its outcome, its events and their keys: about what stores keep beside them.
pub(in crate::store) const A_CALL: u64 = 512;

impl Facts for ReadCall {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
