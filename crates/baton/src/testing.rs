//! For your tests: a fleet in memory with its time in your hands, and handlers tried without any.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::time::Duration;
//! use baton::{Done, Failure, QueuePolicy, testing::TestFleet};
//!
//! let fleet = TestFleet::new();
//! fleet.queue::<u32>("jobs").push(&7).await?;
//! let node = || {
//!     let policy = QueuePolicy { retries: 1, backoff: Duration::from_secs(3600), ..QueuePolicy::default() };
//!     fleet.node().policy(policy).handler("jobs", async |_: u32, context: baton::Context| match context.attempt() {
//!         1 => Err(Failure::new("try again in an hour")),
//!         _ => Ok(Done::default()),
//!     })
//! };
//! assert_eq!(fleet.settle(node()).await?.delayed, 1);
//! fleet.advance(Duration::from_secs(5400)); // pauses vary by a quarter
//! assert_eq!(fleet.settle(node()).await?.done, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

use std::{ops::Deref, sync::Arc, time::Duration};

pub use crate::fleet::trial;
use crate::{
    Cancel, DEFAULT_FLEET, Fleet, FleetOptions, Node, NodeError,
    message::Name,
    store::{Books, Clock, MemoryStore, StoreError, Survey, TakeSurvey},
};

/// A fleet in memory whose clock stands still until it is told to go on.
pub struct TestFleet {
    fleet: Fleet,
    store: MemoryStore,
    clock: Clock,
}

/// What all queues together came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Waiting to be due.
    pub delayed: u64,
    /// Finished.
    pub done: u64,
    /// In the error registry.
    pub dead: u64,
}

impl Default for TestFleet {
    fn default() -> Self {
        Self::new()
    }
}

impl TestFleet {
    /// An empty fleet at the beginning of 2026.
    ///
    /// # Panics
    /// Never: the default name is a good one.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the default name is a good one")]
    pub fn new() -> Self {
        let clock = Clock::manual(1_767_225_600_000);
        let store = MemoryStore::new(clock.clone());
        let options = FleetOptions::new(Name::new(DEFAULT_FLEET).expect("a good name"));
        Self { fleet: Fleet::over(Arc::new(store.clone()), options), store, clock }
    }

    /// Lets time pass: delayed messages become due.
    pub fn advance(&self, time: Duration) {
        self.clock.set(self.clock.now_ms() + u64::try_from(time.as_millis()).unwrap_or(0));
    }

    /// Runs a node until its sources have ended and nothing is left that is due, then stops it.
    ///
    /// # Errors
    /// The node's error.
    pub async fn settle(&self, node: Node) -> Result<Sums, NodeError> {
        let cancel = Cancel::new();
        let running = tokio::spawn(node.run(cancel.clone()));
        loop {
            let survey = self.ask(TakeSurvey).await?;
            if running.is_finished() || (is_settled(&survey) && !self.store.has_due()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancel.drain();
        let broken = |_| NodeError::from(StoreError::Unreachable("the node's task was broken off".to_owned()));
        running.await.map_err(broken)??;
        let sum = |of: fn(&Books) -> u64, survey: &Survey| survey.queues.iter().map(of).sum();
        let survey = self.ask(TakeSurvey).await?;
        Ok(Sums {
            delayed: sum(|books| books.delayed, &survey),
            done: sum(|books| books.done, &survey),
            dead: sum(|books| books.dead, &survey),
        })
    }
}

/// Whether a node has joined, its sources have ended, and nothing is ready or in flight.
fn is_settled(survey: &Survey) -> bool {
    !survey.sessions.is_empty()
        && survey.sources.iter().all(|source| source.ended)
        && survey.queues.iter().all(|books| books.ready == 0 && books.in_flight == 0)
}

impl Deref for TestFleet {
    type Target = Fleet;
    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}
