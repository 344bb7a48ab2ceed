//! What is recalled.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryTables;
use crate::{
    message::{CacheKey, Scope, SessionId},
    store::engine::{ComputeRight, Moved, RecallBooks, Recalled, Recalls},
};

/// The maps of it.
#[derive(Debug, Default)]
pub(super) struct RecallTables {
    books: RecallBooks,
    kept: BTreeMap<CacheKey, Recalled>,
    ends: BTreeSet<(u64, CacheKey)>,
    forgotten: BTreeMap<Scope, (u64, u64)>,
    order: BTreeMap<u64, Scope>,
    compute_rights: BTreeMap<CacheKey, ComputeRight>,
    awaiting: BTreeMap<CacheKey, BTreeMap<SessionId, u64>>,
    recallers: BTreeSet<SessionId>,
}

impl Recalls for MemoryTables {
    fn recall_books(&mut self) -> Moved<RecallBooks> {
        Ok(self.recall.books)
    }

    fn put_recall_books(&mut self, books: &RecallBooks) -> Moved<()> {
        self.recall.books = *books;
        Ok(())
    }

    fn recalled(&mut self, key: &CacheKey) -> Moved<Option<Recalled>> {
        Ok(self.recall.kept.get(key).cloned())
    }

    fn put_recalled(&mut self, key: &CacheKey, kept: &Recalled) -> Moved<()> {
        self.recall.ends.insert((kept.expires, key.clone()));
        self.recall.kept.insert(key.clone(), kept.clone());
        Ok(())
    }

    fn drop_recalled(&mut self, key: &CacheKey) -> Moved<Option<u64>> {
        let Some(kept) = self.recall.kept.remove(key) else { return Ok(None) };
        self.recall.ends.remove(&(kept.expires, key.clone()));
        Ok(Some(kept.value.len() as u64))
    }

    fn oldest_recalled(&mut self, limit: u32) -> Moved<Vec<(u64, CacheKey)>> {
        Ok(self.recall.ends.iter().take(limit as usize).cloned().collect())
    }

    fn forgotten_at(&mut self, scope: &Scope) -> Moved<Option<u64>> {
        Ok(self.recall.forgotten.get(scope).map(|(generation, _)| *generation))
    }

    fn put_forgotten(&mut self, scope: &Scope, generation: u64, clock: u64) -> Moved<()> {
        self.recall.forgotten.insert(scope.clone(), (generation, clock));
        self.recall.order.insert(generation, scope.clone());
        Ok(())
    }

    fn drop_forgotten(&mut self, scope: &Scope) -> Moved<()> {
        if let Some((generation, _)) = self.recall.forgotten.remove(scope) {
            self.recall.order.remove(&generation);
        }
        Ok(())
    }

    fn forgotten_since(&mut self, generation: u64, limit: u64) -> Moved<Vec<(Scope, u64, u64)>> {
        let recall = &self.recall;
        let later =
            recall.order.range(generation.saturating_add(1)..).take(usize::try_from(limit).unwrap_or(usize::MAX));
        let clock = |scope| recall.forgotten.get(scope).map_or(0, |(_, clock)| *clock);
        Ok(later.map(|(generation, scope)| (scope.clone(), *generation, clock(scope))).collect())
    }

    fn compute_right(&mut self, key: &CacheKey) -> Moved<Option<ComputeRight>> {
        Ok(self.recall.compute_rights.get(key).copied())
    }

    fn put_compute_right(&mut self, key: &CacheKey, compute_right: &ComputeRight) -> Moved<()> {
        self.recall.compute_rights.insert(key.clone(), *compute_right);
        Ok(())
    }

    fn drop_compute_right(&mut self, key: &CacheKey) -> Moved<()> {
        self.recall.compute_rights.remove(key);
        Ok(())
    }

    fn compute_rights_of(&mut self, session: SessionId) -> Moved<Vec<CacheKey>> {
        let its = self.recall.compute_rights.iter().filter(|(_, compute_right)| compute_right.session == session);
        Ok(its.map(|(key, _)| key.clone()).collect())
    }

    fn add_awaiting(&mut self, key: &CacheKey, session: SessionId, number: u64) -> Moved<()> {
        self.recall.awaiting.entry(key.clone()).or_default().insert(session, number);
        Ok(())
    }

    fn awaiting(&mut self, key: &CacheKey) -> Moved<Vec<(SessionId, u64)>> {
        Ok(self.recall.awaiting.get(key).into_iter().flatten().map(|(session, number)| (*session, *number)).collect())
    }

    fn drop_awaiting(&mut self, key: &CacheKey) -> Moved<()> {
        self.recall.awaiting.remove(key);
        Ok(())
    }

    fn add_recaller(&mut self, session: SessionId) -> Moved<()> {
        self.recall.recallers.insert(session);
        Ok(())
    }

    fn recallers(&mut self, limit: u64) -> Moved<Vec<SessionId>> {
        Ok(self.recall.recallers.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)).copied().collect())
    }

    fn drop_recaller(&mut self, session: SessionId) -> Moved<bool> {
        Ok(self.recall.recallers.remove(&session))
    }
}
