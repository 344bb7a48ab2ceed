//! Recounting: the data itself is counted and held against the books.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{message::SessionId, store::Facts};

/// Counts the data itself, for the deep audit; see [`crate::store::Recounted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// The longest the store may be held still for it.
    pub max_hold_ms: u64,
}

impl Facts for Recount {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
