//! For your tests: [`TestFleet`], a fleet in memory with its time in your hands; and [`trial`], which runs a [`Handler`](crate::Handler)
//! over parcels without any fleet.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::time::Duration;
//! use baton::{Done, Failure, QueuePolicy, testing::TestFleet};
//!
//! let fleet = TestFleet::new();
//! fleet.queue::<u32>("messages").push(&7).await?;
//! let node = || {
//!     let policy = QueuePolicy { retries: 1, backoff: Duration::from_secs(3600), ..QueuePolicy::default() };
//!     fleet.node().policy(policy).handler("messages", async |_: u32, context: baton::Context| match context.attempt() {
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
    DEFAULT_FLEET, Fleet, FleetOptions, Node, NodeError, Shutdown,
    fleet::Stillness,
    message::Name,
    store::{Books, Clock, Kind, MemoryStore, StoreError, Survey, TakeSurvey},
};

/// A fleet in memory whose clock stands still until it is told to go on.
///
/// Leases alone go by real time, as beats do: no time that passes ends a live session, and one that died is found out
/// within about a second, whatever the clock shows.
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
    /// Among the errors.
    pub failed: u64,
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
        let store = MemoryStore::new(clock.clone()).with_leases_by_real_time();
        let name = Name::new(DEFAULT_FLEET).expect("a good name");
        let options = FleetOptions { clock: clock.clone(), ..FleetOptions::new(name) };
        Self { fleet: Fleet::over(Arc::new(store.clone()), options), store, clock }
    }

    /// Lets time pass: delayed messages become due, and so do [`Tick`](crate::builtin::Tick) and
    /// `Cron` sources that were settled before. What a cron source missed on the way is treated as its `CatchUp` says.
    pub fn advance(&self, time: Duration) {
        self.clock.set(self.clock.now_ms() + u64::try_from(time.as_millis()).unwrap_or(0));
    }

    /// Runs a node until nothing more happens by itself, then stops it: nothing of its queues is left that is due, and
    /// its sources have ended, or wait for the clock of the fleet, or have failed. If a node died before with messages of
    /// these queues, it waits until the lease of that node is over.
    ///
    /// # Errors
    /// The node's error.
    pub async fn settle(&self, node: Node) -> Result<Sums, NodeError> {
        let shutdown = Shutdown::new();
        let (sources, queues) = (node.sources().cloned().collect(), node.queues().cloned().collect());
        let doings = Doings { sources, queues, stillness: node.stillness() };
        let running = tokio::spawn(node.run(shutdown.clone()));
        loop {
            if running.is_finished() || self.is_still(&doings).await? {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shutdown.graceful();
        let broken = |_| NodeError::from(StoreError::Unreachable("the node's task was broken off".to_owned()));
        running.await.map_err(broken)??;
        let sum = |of: fn(&Books) -> u64, survey: &Survey| survey.queues.iter().map(of).sum();
        let survey = self.ask(TakeSurvey).await?;
        Ok(Sums {
            delayed: sum(|books| books.delayed, &survey),
            done: sum(|books| books.done, &survey),
            failed: sum(|books| books.failed, &survey),
        })
    }

    /// Whether a node does nothing more before time passes.
    async fn is_still(&self, doings: &Doings) -> Result<bool, StoreError> {
        let Doings { sources, queues, stillness } = doings;
        // In this order: who sleeps has counted what it gave before, and what is not counted is in the survey.
        let asleep = self.clock.asleep();
        let (unstored, failed) = (stillness.unstored(), stillness.failed());
        let survey = self.ask(TakeSurvey).await?;
        let is_over = |name: &&Name| {
            let ended = survey.sources.iter().any(|source| source.name == **name && source.ended);
            ended || failed.contains(*name)
        };
        let going_on = sources.len() - sources.iter().filter(is_over).count();
        let waiting = |books: &Books| queues.contains(&books.queue) && books.ready > 0 && !books.paused;
        Ok(survey.sessions.iter().any(|session| session.kind == Kind::Node)
            && (asleep, unstored) == (going_on, 0)
            && !survey.queues.iter().any(|books| books.in_flight > 0 || waiting(books))
            && !queues.iter().any(|queue| self.store.has_due(queue)))
    }
}

/// What a node is there for, and how far it is.
struct Doings {
    sources: Vec<Name>,
    queues: Vec<Name>,
    stillness: Stillness,
}

impl Deref for TestFleet {
    type Target = Fleet;
    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

#[cfg(test)]
#[cfg(feature = "cron")]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{
        BoxFuture, CallOptions, Context, Done, Failure, QueuePolicy, Source, SourceError, Stream,
        builtin::{CatchUp, Cron, Exec, ExecOnce, Tick},
        pool::{Limits, Program},
        store::session::{Session, SessionOptions},
    };

    /// Settling must end; how long that may take on a busy machine.
    async fn settled(fleet: &TestFleet, node: Node) -> Sums {
        tokio::time::timeout(Duration::from_secs(30), fleet.settle(node)).await.expect("it settles").unwrap()
    }

    #[tokio::test]
    async fn settling_ends_though_nobody_works_for_a_queue_that_is_pushed_to() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("orders").push(&7).await.unwrap();
        let node = fleet.node().handler("orders", async |order: u32, _| Done::default().then("receipts", &order));
        assert_eq!(settled(&fleet, node).await.done, 1);
        let survey = fleet.ask(TakeSurvey).await.unwrap();
        let receipts = survey.queues.iter().find(|books| books.queue.as_str() == "receipts").unwrap();
        assert_eq!(receipts.ready, 1);
    }

    #[tokio::test]
    async fn settling_ends_with_an_endless_cron_and_time_that_passes_makes_it_fire() {
        let fleet = TestFleet::new();
        let ran = Arc::new(AtomicU64::new(0));
        let node = || {
            let ran = ran.clone();
            let hourly = Cron::new("0 * * * *", CatchUp::Skip).unwrap();
            fleet.node().source("hourly", hourly).handler("messages", move |_: serde_json::Value, _| {
                ran.fetch_add(1, Ordering::Relaxed);
                async { Ok(Done::default()) }
            })
        };
        assert_eq!(settled(&fleet, node()).await.done, 0);
        for hour in 1..=3 {
            fleet.advance(Duration::from_secs(1800));
            assert_eq!(settled(&fleet, node()).await.done, hour - 1, "half an hour too early");
            fleet.advance(Duration::from_secs(1800));
            assert_eq!(settled(&fleet, node()).await.done, hour);
        }
        assert_eq!(ran.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn sources_of_a_running_node_see_time_pass() {
        let fleet = TestFleet::new();
        let node = fleet.node().source("daily", Cron::new("0 0 * * *", CatchUp::All).unwrap().count(2));
        let node = node.source("ticks", Tick::every(Duration::from_secs(3600)).count(3));
        let node = node.handler("messages", async |_: serde_json::Value, _| Ok(Done::default()));
        let shutdown = Shutdown::new();
        let running = tokio::spawn(node.run(shutdown.clone()));
        let all_ended = async {
            loop {
                let survey = fleet.ask(TakeSurvey).await.unwrap();
                if survey.sources.len() == 2 && survey.sources.iter().all(|source| source.ended) {
                    return survey;
                }
                fleet.advance(Duration::from_secs(600));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let survey = tokio::time::timeout(Duration::from_secs(60), all_ended).await.unwrap();
        assert_eq!(survey.queues[0].pushed, 5);
        shutdown.graceful();
        running.await.unwrap().unwrap();
    }

    /// A session that has claimed the message of the queue `builtin`, to be dropped with it.
    async fn claimed_by_one_that_dies(fleet: &TestFleet) -> Session {
        let queue = Name::new("messages").unwrap();
        let options = SessionOptions { kind: Kind::Node, queues: vec![queue.clone()], ..SessionOptions::client() };
        let dying = Session::join(Arc::new(fleet.store.clone()), options).await.unwrap();
        let caught = dying.claim(queue, 1, 1 << 20).await.unwrap();
        assert_eq!(caught.held.unwrap().into_parts().2.len(), 1);
        dying
    }

    /// A node that does the messages of the queue `builtin`.
    fn worker(fleet: &TestFleet) -> Node {
        fleet.node().handler("messages", async |_: u32, _| Ok(Done::default()))
    }

    #[tokio::test]
    async fn settling_ends_after_a_node_died_with_a_message() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("messages").push(&7).await.unwrap();
        let begun = Arc::new(tokio::sync::Notify::new());
        let tell = begun.clone();
        let dying = fleet.node().handler("messages", move |_: u32, _| {
            tell.notify_one();
            std::future::pending()
        });
        let dying = tokio::spawn(dying.run(Shutdown::new()));
        begun.notified().await;
        dying.abort();
        assert!(dying.await.unwrap_err().is_cancelled());
        fleet.advance(Duration::from_secs(3600));
        let next = fleet.node().handler("messages", async |_: u32, context: Context| {
            assert_eq!((context.attempt(), context.crashes()), (1, 1));
            Ok(Done::default())
        });
        assert_eq!(settled(&fleet, next).await.done, 1);
    }

    #[tokio::test]
    async fn a_context_that_outlives_its_node_keeps_no_message_from_others() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("messages").call(&7, &CallOptions::default()).await.unwrap();
        let (kept, mut is_kept) = tokio::sync::mpsc::unbounded_channel();
        let dying = fleet.node().handler("messages", move |_: u32, context: Context| {
            kept.send(context).unwrap();
            std::future::pending()
        });
        let dying = tokio::spawn(dying.run(Shutdown::new()));
        let context = is_kept.recv().await.unwrap();
        dying.abort();
        assert!(dying.await.unwrap_err().is_cancelled());
        assert_eq!(settled(&fleet, worker(&fleet)).await.done, 1);
        context.cancelled().await;
    }

    #[tokio::test]
    async fn an_attempt_that_ended_forgives_the_crashes_before_it() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("messages").push(&7).await.unwrap();
        let policy = QueuePolicy { retries: 1, backoff: Duration::ZERO, ..QueuePolicy::default() };
        let node = fleet.node().policy(policy).handler("messages", async |_: u32, context: Context| {
            let counted = (context.attempt(), context.crashes());
            if counted == (2, 0) { Ok(Done::default()) } else { Err(Failure::new(format_args!("{counted:?}"))) }
        });
        let dying = claimed_by_one_that_dies(&fleet).await;
        drop(dying);
        assert_eq!(settled(&fleet, node).await.done, 1);
    }

    #[tokio::test]
    async fn children_are_told_how_many_nodes_crashed_with_their_message() {
        let sh = |script: &str| Program::new("sh", ["-c", script]);
        let answers = r#"while read -r line; do case "$line" in
            *'"attempt":1,"crashes":1,'*) echo '{"id":1,"event":"end"}' ;;
            *) echo '{"id":1,"event":"error","message":"not told"}' ;;
        esac; done"#;
        for stays in [true, false] {
            let fleet = TestFleet::new();
            fleet.queue::<u32>("messages").push(&7).await.unwrap();
            drop(claimed_by_one_that_dies(&fleet).await);
            let node = if stays {
                fleet.node().handle_with("messages", Exec::new(sh(answers), Limits::default()))
            } else {
                let once = sh(r#"test "$BATON_ATTEMPT $BATON_CRASHES" = "1 1""#);
                fleet.node().handle_with("messages", ExecOnce::new(once, Limits::default()))
            };
            assert_eq!(settled(&fleet, node).await.done, 1, "a child that stays: {stays}");
        }
    }

    #[tokio::test]
    async fn a_last_beat_after_time_has_passed_keeps_no_dead_session_alive() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("messages").push(&7).await.unwrap();
        let dying = claimed_by_one_that_dies(&fleet).await;
        fleet.advance(Duration::from_secs(3600));
        let mut beats = dying.beats();
        beats.mark_unchanged();
        beats.changed().await.unwrap();
        drop((dying, beats));
        assert_eq!(settled(&fleet, worker(&fleet)).await.done, 1);
    }

    #[tokio::test]
    async fn time_that_passes_ends_no_session() {
        let fleet = TestFleet::new();
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(Session::join(Arc::new(fleet.store.clone()), SessionOptions::client()).await.unwrap());
        }
        let last_beats = || sessions.iter().map(|session| session.heart().confirmed()).collect::<Vec<_>>();
        for _ in 0..4 {
            let before = last_beats();
            while last_beats().iter().zip(&before).any(|(now, before)| now == before) {
                fleet.advance(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(!sessions.iter().any(Session::is_over));
            }
        }
    }

    struct Broken;

    impl Source for Broken {
        fn definition(&self) -> String {
            "broken".to_owned()
        }

        fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
            Box::pin(std::future::ready(Err(SourceError::new("broken"))))
        }
    }

    #[tokio::test]
    async fn settling_waits_for_sources_that_end_and_not_for_one_that_failed() {
        let fleet = TestFleet::new();
        fleet.queue::<u32>("other").push(&1).await.unwrap();
        let node = fleet.node().source("ticks", Tick::every(Duration::ZERO).count(5_000)).source("broken", Broken);
        let node = node.handler("messages", async |_: serde_json::Value, _| Ok(Done::default()));
        assert_eq!(settled(&fleet, node).await.done, 5_000);
    }
}
