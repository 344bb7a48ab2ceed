//! Forgetting: values computed so far are good no longer.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use super::malformed;
use crate::{
    message::{Scope, SessionId},
    store::{Facts, StoreError},
};

/// Forgets what was computed for a key, or for all below a prefix, in a new generation, which is the answer. A repeat
/// forgets once more, in a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalidate {
    /// What.
    pub scope: Scope,
    /// For how long what was forgotten is told apart, on the fleet clock: as long as a value is kept or a computation may
    /// take. Then it folds into the floor, below which everything counts as forgotten.
    pub lives_ms: u64,
}

/// The most scopes that are told apart; the oldest fold into the floor before their time.
pub const MAX_INVALIDATIONS: u64 = 4096;
/// The most sessions that are woken to learn of it; all learn of it by their beats.
pub const MAX_NOTIFIED_INVALIDATIONS: u64 = 256;

impl Facts for Invalidate {
    fn session(&self) -> Option<SessionId> {
        None
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.scope.check().is_err() {
            return malformed("a key of what is cached has up to 16 parts and 1,024 bytes");
        }
        Ok(())
    }
}
