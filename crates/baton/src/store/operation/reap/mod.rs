//! Reaping: what a session past its lease holds is taken back.

mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{message::SessionId, store::Facts};

/// Takes back what a session past its lease holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reap {
    /// Who asks.
    pub session: SessionId,
    /// Who is to be reaped.
    pub target: SessionId,
}

/// The answer to [`Reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// Its messages went back or, with their losses used up, to the errors.
    Taken {
        /// Messages back in their queues.
        back: u64,
        /// Messages dead.
        dead: u64,
    },
    /// Its lease has not run out.
    Alive,
    /// There is no such session (any more).
    Gone,
}

impl Facts for Reap {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
