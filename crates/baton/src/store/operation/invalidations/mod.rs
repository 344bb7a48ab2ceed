//! Reading what was forgotten.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Scope, SessionId},
    store::Facts,
};

/// Reads what was forgotten after a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadInvalidations {
    /// The last generation that is known.
    pub since: u64,
}

/// The answer to [`ReadInvalidations`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalidations {
    /// The store's generation.
    pub generation: u64,
    /// What is from before this one counts as forgotten.
    pub floor: u64,
    /// What was forgotten and when, oldest first. If it would be over [`MAX_READ_INVALIDATIONS`], it is none, and the floor is
    /// the generation: everything counts as forgotten.
    pub scopes: Vec<(Scope, u64)>,
}

/// The most scopes in one [`Invalidations`].
pub const MAX_READ_INVALIDATIONS: u64 = 256;

impl Facts for ReadInvalidations {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
