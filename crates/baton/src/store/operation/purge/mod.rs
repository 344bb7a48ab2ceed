//! Purging: what waits in a queue is removed.

#[cfg(feature = "memory")]
mod engine;
mod kept;
#[cfg(feature = "redis")]
mod redis;

use super::malformed;
use crate::{
    message::{Name, SessionId},
    store::{Facts, StoreError},
};

/// The most entries that one step removes, a message of a call counting as several.
pub(in crate::store) const MOST_PURGED: u64 = 1_000;

/// Removes messages that wait in a queue: ready, delayed, or waiting for a retry. What is in flight is not touched. One step
/// removes a bounded number; it is repeated under the next number while something is left. Steps share the numbers of
/// [`Dispose`](crate::store::Dispose).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// Who purges.
    pub session: SessionId,
    /// 1, 2, 3 … within the session, in one series with its disposals.
    pub dispose_no: u64,
    /// The queue.
    pub queue: Name,
    /// The last id to remove from the line, as the first step answered it; nothing at the first step. So pushes that go on
    /// do not make a purge endless.
    pub upto: Option<u64>,
    /// Whether failed messages are removed too. Refused while another session removes them.
    pub failed: bool,
}

/// The answer to [`Purge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// How many messages this step removed.
    pub removed: u64,
    /// How many of them had failed.
    pub failed: u64,
    /// The last id to remove, for the steps that follow.
    pub upto: u64,
    /// Whether there is more to remove.
    pub left: bool,
}

impl Facts for Purge {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.dispose_no == 0 {
            return malformed("a purge has a number above 0");
        }
        Ok(())
    }
}
