//! Starting a source over.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Resets the cursor, the end and the definition of a source that nobody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The source.
    pub source: Name,
}

impl Facts for Rewind {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
