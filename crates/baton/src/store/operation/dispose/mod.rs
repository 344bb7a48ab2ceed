//! Disposing of errors that were dealt with.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use super::malformed;
use crate::{
    message::{MessageId, Name, SessionId},
    store::{Facts, MAX_RUNS, StoreError},
};

/// What happens to failed messages that were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// They were handed over: remove them.
    Remove,
    /// Back to the end of their queue under the same ids, attempts and crashes forgotten. Those whose body is missing stay
    /// where they are.
    Requeue,
}

/// Removes errors. Serial per session, only by the session with the right to remove them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispose {
    /// Who disposes.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub dispose_no: u64,
    /// The queue.
    pub queue: Name,
    /// Message ids; those that are no errors are passed over.
    pub ids: Vec<MessageId>,
    /// What to do.
    pub disposal: Disposal,
}

/// The answer to [`Dispose`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disposed {
    /// How many were removed.
    pub count: u64,
}

impl Facts for Dispose {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.ids.len() > MAX_RUNS {
            return malformed("a disposal takes up to 65536 ids");
        }
        Ok(())
    }
}
