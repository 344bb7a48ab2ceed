//! The results kept.

use bytes::Bytes;

use super::Moved;
use crate::message::{MessageId, Name};

/// The results of a queue's messages, each until it expires.
pub(crate) trait Results {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>>;
    /// Puts one where there is none.
    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()>;
    /// Forgets one, if there is one.
    fn drop_result(&mut self, queue: &Name, id: MessageId) -> Moved<()>;
    /// Forgets those of a queue.
    fn drop_results_of(&mut self, queue: &Name) -> Moved<()>;
    /// What all of them count for ([`weight`](crate::store::engine::results::weight)).
    fn result_bytes(&mut self) -> Moved<u64>;
    /// Forgets up to `limit` results that expired at `now`, oldest first.
    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()>;
    /// Forgets results, oldest first (of those that expire together the lowest queue and id), until they counted for
    /// `bytes` or more, or `limit` have gone.
    fn drop_oldest_results(&mut self, bytes: u64, limit: u32) -> Moved<()>;
}
