//! Reading a result.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{MessageId, Name, SessionId},
    store::Facts,
};

/// Reads a result kept by a settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// The queue.
    pub queue: Name,
    /// The message.
    pub id: MessageId,
}

impl Facts for ReadResult {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
