//! Giving a baton back.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Gives a baton back. One that is not held is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resign {
    /// Who resigns.
    pub session: SessionId,
    /// The source.
    pub source: Name,
    /// The epoch it was held in.
    pub epoch: u64,
}

impl Facts for Resign {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
