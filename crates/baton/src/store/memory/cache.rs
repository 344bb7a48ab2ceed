//! What is cached.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryTables;
use crate::{
    message::{CacheKey, Scope, SessionId},
    store::engine::{CacheBooks, CacheTable, CachedEntry, ComputeRight, Moved},
};

/// The maps of it.
#[derive(Debug, Default)]
pub(super) struct CacheTables {
    books: CacheBooks,
    kept: BTreeMap<CacheKey, CachedEntry>,
    ends: BTreeSet<(u64, CacheKey)>,
    forgotten: BTreeMap<Scope, (u64, u64)>,
    order: BTreeMap<u64, Scope>,
    compute_rights: BTreeMap<CacheKey, ComputeRight>,
    awaiting: BTreeMap<CacheKey, BTreeMap<SessionId, u64>>,
    cache_users: BTreeSet<SessionId>,
}

impl CacheTable for MemoryTables {
    fn cache_books(&mut self) -> Moved<CacheBooks> {
        Ok(self.cache.books)
    }

    fn put_cache_books(&mut self, books: &CacheBooks) -> Moved<()> {
        self.cache.books = *books;
        Ok(())
    }

    fn cached(&mut self, key: &CacheKey) -> Moved<Option<CachedEntry>> {
        Ok(self.cache.kept.get(key).cloned())
    }

    fn put_cached(&mut self, key: &CacheKey, kept: &CachedEntry) -> Moved<()> {
        self.cache.ends.insert((kept.expires, key.clone()));
        self.cache.kept.insert(key.clone(), kept.clone());
        Ok(())
    }

    fn drop_cached(&mut self, key: &CacheKey) -> Moved<Option<u64>> {
        let Some(kept) = self.cache.kept.remove(key) else { return Ok(None) };
        self.cache.ends.remove(&(kept.expires, key.clone()));
        Ok(Some(kept.value.len() as u64))
    }

    fn oldest_cached(&mut self, limit: u32) -> Moved<Vec<(u64, CacheKey)>> {
        Ok(self.cache.ends.iter().take(limit as usize).cloned().collect())
    }

    fn invalidated_at(&mut self, scope: &Scope) -> Moved<Option<u64>> {
        Ok(self.cache.forgotten.get(scope).map(|(generation, _)| *generation))
    }

    fn put_invalidation(&mut self, scope: &Scope, generation: u64, clock: u64) -> Moved<()> {
        self.cache.forgotten.insert(scope.clone(), (generation, clock));
        self.cache.order.insert(generation, scope.clone());
        Ok(())
    }

    fn drop_invalidation(&mut self, scope: &Scope) -> Moved<()> {
        if let Some((generation, _)) = self.cache.forgotten.remove(scope) {
            self.cache.order.remove(&generation);
        }
        Ok(())
    }

    fn invalidated_since(&mut self, generation: u64, limit: u64) -> Moved<Vec<(Scope, u64, u64)>> {
        let cache = &self.cache;
        let later =
            cache.order.range(generation.saturating_add(1)..).take(usize::try_from(limit).unwrap_or(usize::MAX));
        let clock = |scope| cache.forgotten.get(scope).map_or(0, |(_, clock)| *clock);
        Ok(later.map(|(generation, scope)| (scope.clone(), *generation, clock(scope))).collect())
    }

    fn compute_right(&mut self, key: &CacheKey) -> Moved<Option<ComputeRight>> {
        Ok(self.cache.compute_rights.get(key).copied())
    }

    fn put_compute_right(&mut self, key: &CacheKey, compute_right: &ComputeRight) -> Moved<()> {
        self.cache.compute_rights.insert(key.clone(), *compute_right);
        Ok(())
    }

    fn drop_compute_right(&mut self, key: &CacheKey) -> Moved<()> {
        self.cache.compute_rights.remove(key);
        Ok(())
    }

    fn compute_rights_of(&mut self, session: SessionId) -> Moved<Vec<CacheKey>> {
        let its = self.cache.compute_rights.iter().filter(|(_, compute_right)| compute_right.session == session);
        Ok(its.map(|(key, _)| key.clone()).collect())
    }

    fn add_awaiting(&mut self, key: &CacheKey, session: SessionId, number: u64) -> Moved<()> {
        self.cache.awaiting.entry(key.clone()).or_default().insert(session, number);
        Ok(())
    }

    fn awaiting(&mut self, key: &CacheKey) -> Moved<Vec<(SessionId, u64)>> {
        Ok(self.cache.awaiting.get(key).into_iter().flatten().map(|(session, number)| (*session, *number)).collect())
    }

    fn drop_awaiting(&mut self, key: &CacheKey) -> Moved<()> {
        self.cache.awaiting.remove(key);
        Ok(())
    }

    fn add_cache_user(&mut self, session: SessionId) -> Moved<()> {
        self.cache.cache_users.insert(session);
        Ok(())
    }

    fn cache_users(&mut self, limit: u64) -> Moved<Vec<SessionId>> {
        Ok(self.cache.cache_users.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).copied().collect())
    }

    fn drop_cache_user(&mut self, session: SessionId) -> Moved<bool> {
        Ok(self.cache.cache_users.remove(&session))
    }
}
