//! Idempotency keys in the order of their ends, and bookmarks.

use super::MemoryTables;
use crate::{
    message::{Key, Name},
    store::{
        Place,
        engine::{KeyRecord, Keys, Moved},
    },
};

impl Keys for MemoryTables {
    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>> {
        Ok(self.keys.get(key).cloned())
    }

    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()> {
        if let Some(old) = self.keys.insert(key.clone(), record.clone()) {
            self.key_ends.remove(&(old.expires_ms, key.clone()));
        }
        self.key_ends.insert((record.expires_ms, key.clone()));
        Ok(())
    }

    fn key_count(&mut self) -> Moved<u64> {
        Ok(self.keys.len() as u64)
    }

    fn drop_keys_of(&mut self, queue: &Name) -> Moved<()> {
        let ends = &mut self.key_ends;
        self.keys.retain(|key, record| {
            let stays = record.queue != *queue;
            if !stays {
                ends.remove(&(record.expires_ms, key.clone()));
            }
            stays
        });
        Ok(())
    }

    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<u32> {
        for gone in 0..limit {
            let Some((_, key)) = self.key_ends.first().filter(|(end, _)| *end <= now).cloned() else { return Ok(gone) };
            self.key_ends.pop_first();
            self.keys.remove(&key);
        }
        Ok(limit)
    }

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>> {
        Ok(self.bookmarks.get(key).map(|(_, place)| *place))
    }

    fn put_bookmark(&mut self, key: &Key, queue: Option<&Name>, place: &Place) -> Moved<()> {
        self.bookmarks.insert(key.clone(), (queue.cloned(), *place));
        Ok(())
    }

    fn drop_bookmarks_of(&mut self, queue: &Name) -> Moved<()> {
        self.bookmarks.retain(|_, (of, _)| of.as_ref() != Some(queue));
        Ok(())
    }
}
