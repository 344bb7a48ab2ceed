//! A store under test, with its time in the test's hands.

use std::sync::Arc;

use baton::{
    message::Name,
    store::{Clock, MemoryStore, Store},
};
use tempfile::TempDir;

use crate::server::RedisServer;

/// Where every test begins.
pub const START_MS: u64 = 1_700_000_000_000;

/// Sets the time a store sees.
#[derive(Clone)]
enum Hands {
    Manual(Clock),
}

/// A store and what keeps it alive.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    hands: Hands,
    now: u64,
    #[expect(dead_code, reason = "kept so that files and servers outlive the store")]
    keep: (Option<TempDir>, Option<Arc<RedisServer>>),
}

impl Subject {
    /// The model.
    #[must_use]
    pub fn memory() -> Self {
        let clock = Clock::manual(START_MS);
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self { store, hands: Hands::Manual(clock), now: START_MS, keep: (None, None) }
    }

    /// The time the store sees.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Sets it, forwards or backwards.
    pub async fn set_time(&mut self, ms: u64) {
        self.now = ms;
        match &mut self.hands {
            Hands::Manual(clock) => clock.set(ms),
        }
    }

    /// Lets time pass.
    pub async fn pass(&mut self, ms: u64) {
        self.set_time(self.now + ms).await;
    }
}

/// A fleet name for tests.
#[must_use]
pub fn test_fleet() -> Name {
    Name::new("test").expect("a good name")
}
