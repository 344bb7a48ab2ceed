//! Reaping: what a session past its lease holds is taken back.

#[cfg(feature = "memory")]
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

/// The most entries of lines that one call to a real store makes of what a session held; what is left then is an unreaped.
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub(in crate::store) const RETURNED_AT_ONCE: u64 = 1_000;

/// The answer to [`Reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// Its messages went back or, with their crashes used up, to the errors.
    Taken {
        /// Messages back in their queues.
        back: u64,
        /// Messages failed.
        failed: u64,
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
