//! Looking: which queues are worth a claim.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Asks which of the queues a session works for are worth a claim, so that a lost wake-up costs a second at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Who asks.
    pub session: SessionId,
}

/// The answer to [`Look`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// By name, with the milliseconds until there is something: none if there is now, or if the session is not entered
    /// among those that wait.
    pub queues: Vec<(Name, u64)>,
}

impl Facts for Look {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
