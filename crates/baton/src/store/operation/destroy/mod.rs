//! Destroying: a fleet is removed.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::SessionId,
    store::{Books, Facts},
};

/// Removes everything the fleet has stored; refused while a node has a session. The answer is what this call has
/// removed: nothing if nobody has joined or ordered anything since the last destruction, or if another one was quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destroy;

/// What a fleet held when it was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Queues.
    pub queues: u64,
    /// Messages waiting or in flight.
    pub messages: u64,
    /// Messages among the errors.
    pub errors: u64,
}

impl Removed {
    /// What queues with these books hold.
    fn from_books<'a>(books: impl Iterator<Item = &'a Books>) -> Self {
        books.fold(Self::default(), |sum, it| Self {
            queues: sum.queues + 1,
            messages: [it.ready, it.delayed, it.in_flight].into_iter().fold(sum.messages, u64::saturating_add),
            errors: sum.errors.saturating_add(it.failed),
        })
    }
}

impl Facts for Destroy {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
