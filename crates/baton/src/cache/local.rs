//! What is kept in this process: the values used last, within a bound of bytes.
//!
//! Shards under short locks, each a map in the order of use with a count of its own bytes. A value weighs its bytes, its
//! key's and [`OVERHEAD`]; one that weighs over an eighth of the bound is not kept, so no single one displaces the rest: no shard
//! has less than an eighth, and a value displaces only others of its shard.
//! Whether an entry is still valid is asked at each hit, by generation: nothing has to be searched for when something is
//! invalidated.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hashlink::{LinkedHashMap, linked_hash_map::RawEntryMut};
use tokio::time::Instant;

use crate::message::CacheKey;

/// The part of the bound that one value may have: one of so many.
const HEAVIEST: u64 = 8;

/// What an entry counts for beside its key and its value.
pub(super) const OVERHEAD: u64 = 256;

/// The most shards, so that the heaviest value has room in one, and the fewest bytes that one is worth.
const SHARDS: u64 = HEAVIEST;
const SHARD_BYTES: u64 = 1 << 20;

/// A value that is kept.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) value: Bytes,
    /// The generation at which it was valid.
    pub(super) generation: u64,
    /// When it was computed, and until when it is kept.
    pub(super) made: Instant,
    pub(super) expires: Instant,
}

#[derive(Debug)]
struct Kept {
    entry: Entry,
    /// No scope of its key was forgotten up to this generation.
    checked: u64,
}

/// The values kept.
#[derive(Debug)]
pub(super) struct LocalCache {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    heaviest: u64,
}

#[derive(Debug)]
struct Shard {
    entries: LinkedHashMap<CacheKey, Kept, RandomState>,
    bytes: u64,
    bound: u64,
}

impl LocalCache {
    pub(super) fn new(bytes: u64) -> Self {
        let hasher = RandomState::new();
        let count = (bytes / SHARD_BYTES).clamp(1, SHARDS);
        let shard = || {
            let entries = LinkedHashMap::with_hasher(hasher.clone());
            Mutex::new(Shard { entries, bytes: 0, bound: bytes / count })
        };
        let shards = (0..count).map(|_| shard()).collect();
        Self { shards, hasher, heaviest: bytes / HEAVIEST }
    }

    /// The value of a key, if it is kept at `now` and `covering` says that nothing newer than it was forgotten that covers
    /// the key; asked only if anything was forgotten since it was last.
    pub(super) fn hit(
        &self, key: &CacheKey, now: Instant, generation: u64, covering: impl FnOnce() -> u64,
    ) -> Option<Entry> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard_of(hash)?;
        // Shards hash as this does.
        let RawEntryMut::Occupied(mut place) = shard.entries.raw_entry_mut().from_key_hashed_nocheck(hash, key) else {
            return None;
        };
        place.to_back();
        let kept = place.into_mut();
        if kept.entry.expires <= now || kept.checked < generation && covering() > kept.entry.generation {
            shard.remove(key);
            return None;
        }
        kept.checked = kept.checked.max(generation);
        Some(kept.entry.clone())
    }

    /// Keeps a value; whether it is kept. One that knows of more invalidations stays in its place.
    pub(super) fn keep(&self, key: &CacheKey, entry: Entry) -> bool {
        let weight = weight(key, &entry.value);
        if weight > self.heaviest {
            return false;
        }
        let Some(mut shard) = self.shard(key) else { return false };
        if shard.entries.get(key).is_some_and(|kept| kept.entry.generation > entry.generation) {
            return false;
        }
        shard.remove(key);
        let checked = entry.generation;
        shard.entries.insert(key.clone(), Kept { entry, checked });
        shard.bytes += weight;
        while shard.bytes > shard.bound
            && let Some((key, kept)) = shard.entries.pop_front()
        {
            shard.bytes -= self::weight(&key, &kept.entry.value);
        }
        true
    }

    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.entries.clear();
            shard.bytes = 0;
        }
    }

    /// What is kept: values, and what they weigh.
    pub(super) fn size(&self) -> (usize, u64) {
        let sizes = self.shards.iter().map(|shard| {
            let shard = lock(shard);
            (shard.entries.len(), shard.bytes)
        });
        sizes.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    }

    fn shard(&self, key: &CacheKey) -> Option<MutexGuard<'_, Shard>> {
        self.shard_of(self.hasher.hash_one(key))
    }

    fn shard_of(&self, hash: u64) -> Option<MutexGuard<'_, Shard>> {
        let at = usize::try_from(hash >> 32).unwrap_or(0) % self.shards.len().max(1);
        self.shards.get(at).map(lock)
    }
}

impl Shard {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(kept) = self.entries.remove(key) {
            self.bytes -= weight(key, &kept.entry.value);
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an entry counts for.
fn weight(key: &CacheKey, value: &Bytes) -> u64 {
    OVERHEAD + key.as_str().len() as u64 + value.len() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(bytes: usize, generation: u64) -> Entry {
        let now = Instant::now();
        Entry { value: vec![b'x'; bytes].into(), generation, made: now, expires: now + Duration::from_secs(30) }
    }

    fn get(cache: &LocalCache, name: &str) -> Option<Entry> {
        cache.hit(&CacheKey::new(name), Instant::now(), 0, || 0)
    }

    #[test]
    fn the_value_used_least_lately_goes_first() {
        // Room for ten of 100 bytes with keys of one byte.
        let cache = LocalCache::new(10 * 357);
        for nth in 0..10 {
            assert!(cache.keep(&CacheKey::new(nth.to_string()), entry(100, 0)));
        }
        assert_eq!(cache.size(), (10, 3570));
        assert!(get(&cache, "0").is_some());
        assert!(cache.keep(&CacheKey::new("x"), entry(100, 0)));
        assert!(get(&cache, "0").is_some() && get(&cache, "x").is_some());
        assert!(get(&cache, "1").is_none(), "it was used least lately");
    }

    #[test]
    fn one_oversized_value_never_displaces_the_rest() {
        let cache = LocalCache::new(10 * 357);
        for nth in 0..9 {
            assert!(cache.keep(&CacheKey::new(nth.to_string()), entry(100, 0)));
        }
        assert!(!cache.keep(&CacheKey::new("large"), entry(3_000, 0)));
        assert_eq!(cache.size().0, 9);
        let long = CacheKey::new("k".repeat(60)).part("k".repeat(60)).part("k".repeat(60));
        assert!(!cache.keep(&long, entry(100, 0)), "its key counts");
    }

    #[test]
    fn a_value_of_an_eighth_is_kept_and_displaces_its_shard_at_most() {
        for bytes in [64 << 20, 5 << 20, (64 << 20) + 7] {
            let cache = LocalCache::new(bytes);
            for nth in 0..1_000 {
                assert!(cache.keep(&CacheKey::new(nth.to_string()), entry(100, 0)));
            }
            let most = usize::try_from(bytes / 8 - OVERHEAD - 1).unwrap();
            assert!(!cache.keep(&CacheKey::new("x"), entry(most + 1, 0)));
            assert!(cache.keep(&CacheKey::new("x"), entry(most, 0)) && get(&cache, "x").is_some());
            // An eighth of a thousand, and as many more as chance may put into one shard.
            assert!(cache.size().0 > 750 && cache.size().1 <= bytes, "{:?}", cache.size());
        }
    }

    #[test]
    fn an_older_value_does_not_take_the_place_of_a_newer_one() {
        let cache = LocalCache::new(1 << 20);
        assert!(cache.keep(&CacheKey::new("a"), entry(1, 5)));
        assert!(!cache.keep(&CacheKey::new("a"), entry(2, 4)));
        assert_eq!(get(&cache, "a").map(|entry| entry.value.len()), Some(1));
    }
}
