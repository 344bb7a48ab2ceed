//! Cancelling a call.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{CallId, SessionId},
    store::Facts,
};

/// Marks a call: the next step of each of its messages ends it. A claim withholds it; a retry, a hand-back or a crash
/// does not return it; what is done or dead stays so. Those who hold messages of it hear so with their next beat. Those
/// that are delayed, whose next step may be far away, end at once, some with each such request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelCall {
    /// The call.
    pub call: CallId,
    /// Whether only one is meant that has asked to be cancelled without a follower, and has had none for long enough.
    pub if_forsaken: bool,
}

/// The answer to [`CancelCall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// It is marked, now or before.
    Marked,
    /// The same, and more of its messages are delayed than one step ends: ask again.
    More,
    /// It has ended.
    Ended,
    /// It is followed, or was a moment ago.
    Followed,
    /// There is no such call.
    Unknown,
}

/// How many delayed messages of a call one step ends.
pub(in crate::store) const DELAYED_AT_ONCE: usize = 64;

impl Facts for CancelCall {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
