//! The right to remove the failed messages of a queue.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Takes the right to remove the failed messages of a queue, also from a session that is gone. Repeating it takes a new snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalBegin {
    /// The session that removes them.
    pub session: SessionId,
    /// The queue.
    pub queue: Name,
}

/// The answer to [`RemovalBegin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalBegun {
    /// The newest error of the snapshot.
    pub upto: u64,
    /// The last dispose number of this session.
    pub dispose_no: u64,
}

impl Facts for RemovalBegin {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
