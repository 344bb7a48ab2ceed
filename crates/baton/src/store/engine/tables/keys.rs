//! Idempotency keys and bookmarks.

use super::Moved;
use crate::{
    message::{Digest, Key, MessageId, Name},
    store::Place,
};

/// An idempotency key in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    pub(crate) queue: Name,
    pub(crate) id: MessageId,
    /// When the message was pushed.
    pub(crate) born: u64,
    pub(crate) digest: Digest,
    pub(crate) expires_ms: u64,
}

/// What was pushed under a key, and how far an import got.
pub(crate) trait Keys {
    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>>;
    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()>;
    /// Forgets the keys of a queue's messages.
    fn drop_keys_of(&mut self, queue: &Name) -> Moved<()>;
    fn key_count(&mut self) -> Moved<u64>;
    /// Forgets up to `limit` keys that expired at `now`, oldest first; how many.
    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<u32>;

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>>;
    fn put_bookmark(&mut self, key: &Key, queue: Option<&Name>, place: &Place) -> Moved<()>;
    /// Forgets the bookmarks of what was pushed to a queue.
    fn drop_bookmarks_of(&mut self, queue: &Name) -> Moved<()>;
}
