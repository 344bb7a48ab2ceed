//! Queues and their books.

use super::Moved;
use crate::{
    message::{Name, SessionId},
    store::Books,
};

/// A queue as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    pub(crate) books: Books,
    /// May name a session that is gone: then nobody drains.
    pub(crate) drainer: Option<SessionId>,
    /// How many of those who wait closing the record wakes: one, if this call gave the queue something. Never kept.
    pub(crate) wakes: usize,
}

/// The queues by their names.
pub(crate) trait Queues {
    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>>;
    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()>;
    /// Forgets a queue that holds nothing. These books are kept for a later queue of the name.
    fn forget_queue(&mut self, books: &Books) -> Moved<()>;
    /// The books kept of a queue that was forgotten, for the record of the one that takes its name.
    fn forgotten_queue(&mut self, name: &Name) -> Moved<Option<Books>>;
    /// All queues by name.
    fn queues(&mut self) -> Moved<Vec<QueueRecord>>;
}
