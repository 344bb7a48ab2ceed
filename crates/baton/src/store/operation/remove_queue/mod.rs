//! Removing a queue: its name is forgotten, its last id is kept.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::{Books, Facts},
};

/// Forgets a queue with its results, its idempotency keys, the bookmarks of its imports and whether it was
/// paused. The last id is kept: a later push to
/// the name goes on counting. Refused while a node works for the queue or feeds it, and while it holds messages. A queue
/// that is not known is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveQueue {
    /// The queue.
    pub queue: Name,
}

/// How many messages a queue holds, failed ones among them.
pub(in crate::store) const fn held(books: &Books) -> u64 {
    books.ready.saturating_add(books.delayed).saturating_add(books.in_flight).saturating_add(books.failed)
}

impl Facts for RemoveQueue {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
