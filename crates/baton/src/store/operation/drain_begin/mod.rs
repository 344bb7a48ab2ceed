//! Beginning to drain the errors of a queue.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Begins to drain a queue's errors, or takes over from a drainer that is gone. Repeating it takes a new snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainBegin {
    /// Who drains.
    pub session: SessionId,
    /// The queue.
    pub queue: Name,
}

/// The answer to [`DrainBegin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draining {
    /// The newest error of the snapshot.
    pub upto: u64,
    /// The last dispose number of this session.
    pub dispose_no: u64,
}

impl Facts for DrainBegin {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
