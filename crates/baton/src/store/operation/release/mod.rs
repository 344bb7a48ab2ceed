//! Releasing: a right to compute is given up.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{CacheKey, SessionId},
    store::Facts,
};

/// Gives up the right to compute the value of a key: those who wait are woken and contend for it. One that does not have it
/// changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Who had it.
    pub session: SessionId,
    /// The key.
    pub key: CacheKey,
    /// The number of the right to compute.
    pub number: u64,
}

impl Facts for Release {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
