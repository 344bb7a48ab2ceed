//! The results kept.

use bytes::Bytes;

use super::Moved;
use crate::message::{MessageId, Name};

/// The results of a queue's messages, each until it expires.
pub(crate) trait Results {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>>;
    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()>;
    /// Forgets up to `limit` results that expired at `now`, oldest first.
    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()>;
}
