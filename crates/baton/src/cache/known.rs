//! What this process knows of invalidations: up to which generation, and until when it may go by that.
//!
//! A value that was valid at generation `g` is valid at the generation known here if no scope of its key was forgotten after
//! `g`. Of scopes there is a bounded number; the oldest fold into the floor, and what is from before the floor is taken for
//! covered.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    message::{CacheKey, Scope},
    moment,
};

/// The most scopes remembered.
const MAX_SCOPES: usize = 4096;

/// For ever, as milliseconds from the beginning.
const ALWAYS: u64 = u64::MAX;

/// What is known.
#[derive(Debug)]
pub(super) struct Known {
    begun: Instant,
    generation: AtomicU64,
    /// Until when all invalidations but those of the last moments are known, in milliseconds from `begun`.
    valid_until: AtomicU64,
    scopes: RwLock<Scopes>,
}

#[derive(Debug, Default)]
struct Scopes {
    floor: u64,
    by_scope: HashMap<Scope, u64>,
    by_generation: BTreeMap<u64, Scope>,
}

impl Known {
    /// Of a cache without a store: what is known is all there is.
    pub(super) fn alone() -> Self {
        Self::until(ALWAYS)
    }

    /// Of one with a store, which has not said anything yet.
    pub(super) fn nothing() -> Self {
        Self::until(0)
    }

    fn until(valid_until: u64) -> Self {
        Self {
            begun: Instant::now(),
            generation: AtomicU64::new(0),
            valid_until: AtomicU64::new(valid_until),
            scopes: RwLock::default(),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether this process may go by what it knows.
    pub(super) fn is_valid(&self, now: Instant) -> bool {
        self.millis(now) < self.valid_until.load(Ordering::Acquire)
    }

    /// What is known was all there was at this moment; it is gone by for so long.
    pub(super) fn confirm(&self, at: Instant, during: Duration) {
        self.valid_until.fetch_max(self.millis(moment::after(at, during)), Ordering::AcqRel);
    }

    /// What is known may not be gone by until it is confirmed.
    pub(super) fn doubt(&self) {
        self.valid_until.store(0, Ordering::Release);
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(ALWAYS - 1)
    }

    /// The newest generation in which something was forgotten that covers the key.
    pub(super) fn covering(&self, key: &CacheKey) -> u64 {
        let scopes = self.scopes();
        key.scopes().filter_map(|scope| scopes.by_scope.get(&scope)).fold(scopes.floor, |newest, it| newest.max(*it))
    }

    /// Forgets a scope in the next generation, which is the answer.
    pub(super) fn forget(&self, scope: Scope) -> u64 {
        let mut scopes = self.scopes_mut();
        let generation = self.generation() + 1;
        scopes.note(scope, generation);
        self.generation.store(generation, Ordering::Release);
        generation
    }

    /// Takes over what was forgotten up to this generation; everything from before the floor counts as covered.
    pub(super) fn learn(&self, forgotten: impl IntoIterator<Item = (Scope, u64)>, floor: u64, generation: u64) {
        let mut scopes = self.scopes_mut();
        for (scope, at) in forgotten {
            scopes.note(scope, at);
        }
        scopes.floor = scopes.floor.max(floor);
        // Only now: who reads the generation finds all scopes up to it.
        self.generation.fetch_max(generation, Ordering::AcqRel);
    }

    /// Begins anew with another store's data, or with what was restored: generations may mean something else.
    pub(super) fn begin_anew(&self) {
        let mut scopes = self.scopes_mut();
        *scopes = Scopes::default();
        self.generation.store(0, Ordering::Release);
        self.doubt();
    }

    fn scopes(&self) -> RwLockReadGuard<'_, Scopes> {
        self.scopes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn scopes_mut(&self) -> RwLockWriteGuard<'_, Scopes> {
        self.scopes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scopes {
    fn note(&mut self, scope: Scope, generation: u64) {
        if let Some(former) = self.by_scope.get(&scope).copied() {
            if former >= generation {
                return;
            }
            self.by_generation.remove(&former);
        }
        self.by_scope.insert(scope.clone(), generation);
        self.by_generation.insert(generation, scope);
        while self.by_scope.len() > MAX_SCOPES
            && let Some((generation, scope)) = self.by_generation.pop_first()
        {
            self.by_scope.remove(&scope);
            self.floor = self.floor.max(generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Prefix;

    #[test]
    fn the_oldest_scopes_fold_into_a_floor() {
        let known = Known::alone();
        let (one, other) = (CacheKey::new("one"), CacheKey::new("other"));
        assert_eq!(known.forget(Scope::of_key(&one)), 1);
        assert_eq!((known.covering(&one), known.covering(&other)), (1, 0));
        for nth in 0..MAX_SCOPES {
            known.forget(Scope::of_prefix(&Prefix::new(nth.to_string())));
        }
        assert_eq!((known.covering(&one), known.covering(&other)), (1, 1));
        assert_eq!(known.scopes().by_scope.len(), MAX_SCOPES);
        assert_eq!(known.generation(), 1 + MAX_SCOPES as u64);
    }
}
