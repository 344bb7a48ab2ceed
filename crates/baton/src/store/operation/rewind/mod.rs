//! Starting a source over, or letting one that has ended go on.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Resets the cursor, the end and the definition of a source without a live holder, or its end alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The source.
    pub source: Name,
    /// Whether it goes on at its cursor: only its end is reset. Without an end nothing is done.
    pub goes_on: bool,
}

impl Facts for Rewind {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
