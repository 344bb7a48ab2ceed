//! Forgetting a source.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Forgets a source that no live session offers, its cursor with it; what it pushed stays. One that is not known is
/// left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remove {
    /// The source.
    pub source: Name,
}

impl Facts for Remove {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
