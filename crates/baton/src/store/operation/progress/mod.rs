//! Progress: how far the work of a queue is.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::{Books, Facts},
};

/// Asks how far the work of one queue is. What it costs does not grow with the fleet, so it may be asked often, unlike a
/// [`TakeSurvey`](crate::store::TakeSurvey).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadProgress {
    /// The queue.
    pub queue: Name,
    /// A source that feeds it, if that matters.
    pub source: Option<Name>,
}

/// The answer to [`ReadProgress`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The books of the queue, if it was ever named.
    pub books: Option<Books>,
    /// When the first of its delayed messages is due, by the fleet's clock.
    pub due_ms: Option<u64>,
    /// Whether the source is known and has ended.
    pub ended: bool,
}

impl Facts for ReadProgress {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
