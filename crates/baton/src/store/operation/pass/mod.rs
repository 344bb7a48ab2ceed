//! Passing a wake-up on.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Hands a wake-up on: this session waits for the queue no longer, and another one that does is woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Who was woken and has no use for it.
    pub session: SessionId,
    /// The queue.
    pub queue: Name,
}

impl Facts for Pass {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
