//! Panics where a handler's future goes, and in observers: a failure of one message at most, and counted.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use baton::{
    Context, Done, Event, Failure, Fleet, FleetOptions, Name, Node, Observer, QueuePolicy, Shutdown,
    store::{Books, MemoryStore, TakeSurvey, message::Range},
};
use baton_testkit::subject::test_fleet;
use bytes::Bytes;

const MESSAGES: u64 = 100;

/// Panics as it goes, unless it goes because of a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "at its drop");
    }
}

/// Done at once; panics as it goes afterwards.
struct DoneBomb(Bomb);

impl Future for DoneBomb {
    type Output = Result<Done, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Self(_bomb) = &*self;
        Poll::Ready(Ok(Done::default()))
    }
}

/// Runs a node over a hundred messages until all of them are done or dead; the books then.
async fn run(node: impl FnOnce(Node) -> Node) -> Books {
    let fleet = Fleet::over(Arc::new(MemoryStore::default()), FleetOptions::new(test_fleet()));
    fleet.queue::<u64>("q").push_all(&(0..MESSAGES).collect::<Vec<_>>()).await.unwrap();
    let shutdown = Shutdown::new();
    let running = tokio::spawn(node(fleet.node()).run(shutdown.clone()));
    let ended = async {
        loop {
            let books = fleet.ask(TakeSurvey).await.unwrap().queues.remove(0);
            if books.done + books.failed == MESSAGES {
                break books;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let books = tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    shutdown.graceful();
    running.await.unwrap().unwrap();
    books
}

/// What a node told, if its observer does not panic.
struct Witness {
    told: Mutex<Vec<Event>>,
    panics_in: &'static str,
}

impl Witness {
    fn new(panics_in: &'static str) -> Arc<Self> {
        Arc::new(Self { told: Mutex::default(), panics_in })
    }

    fn look(&self, here: &str) {
        assert!(self.panics_in != here, "in {here}");
    }
}

impl Observer for Witness {
    fn ran(&self, _: &Name, _: Range, _: &Bytes) {
        self.look("ran");
    }

    fn settling(&self) {
        self.look("settling");
    }

    fn on_event(&self, event: &Event) {
        self.told.lock().unwrap().push(event.clone());
        self.look("told");
    }
}

#[tokio::test]
async fn a_handler_that_panics_when_its_timeout_cuts_it_has_failed() {
    for concurrency in [1, 64] {
        let witness = Witness::new("");
        let timeout = Some(Duration::from_millis(50));
        let books = run(|node| {
            let policy = QueuePolicy { concurrency, timeout, ..QueuePolicy::default() };
            node.policy(policy).observed_by(witness.clone()).handler("q", async |number: u64, _: Context| {
                if number == 7 {
                    let _bomb = Bomb;
                    std::future::pending::<()>().await;
                }
                Ok(Done::default())
            })
        })
        .await;
        assert_eq!((books.done, books.failed), (MESSAGES - 1, 1));
        let told = witness.told.lock().unwrap();
        let failed =
            |event: &&Event| matches!(event, Event::MessageFailed { error, .. } if error.contains("at its drop"));
        assert_eq!(told.iter().filter(failed).count(), 1, "{told:?}");
    }
}

#[tokio::test]
async fn a_future_that_panics_after_its_end_changes_no_outcome() {
    let books = run(|node| node.handler("q", |_: u64, _: Context| DoneBomb(Bomb))).await;
    assert_eq!((books.done, books.failed), (MESSAGES, 0));
}

#[tokio::test]
async fn an_observer_that_panics_hurts_no_message_and_is_told_once() {
    for place in ["ran", "settling", "told"] {
        let (witness, runs) = (Witness::new(place), Arc::new(AtomicU64::new(0)));
        let count = runs.clone();
        let books = run(|node| {
            node.observed_by(witness.clone()).handler("q", move |_: u64, _: Context| {
                count.fetch_add(1, Ordering::Relaxed);
                async { Ok(Done::default()) }
            })
        })
        .await;
        assert_eq!((books.done, runs.load(Ordering::Relaxed)), (MESSAGES, MESSAGES), "{place}");
        let told = witness.told.lock().unwrap();
        let panicked =
            |event: &&Event| matches!(event, Event::ObserverPanicked { error } if *error == format!("in {place}"));
        assert_eq!(told.iter().filter(panicked).count(), 1, "{place}: {told:?}");
    }
}

#[tokio::test]
async fn the_largest_concurrency_is_one_like_any_other() {
    let policy = QueuePolicy { concurrency: usize::MAX, ..QueuePolicy::default() };
    let books = run(|node| {
        node.policy(policy).handler("q", async |_: u64, _: Context| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Done::default())
        })
    })
    .await;
    assert_eq!(books.done, MESSAGES);
}

/// What is thrown panics as it goes.
fn throw() -> ! {
    std::panic::panic_any(Bomb)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_thrown_may_panic_as_it_goes() {
    let policy = || QueuePolicy { retries: 1, backoff: Duration::ZERO, ..QueuePolicy::default() };
    let books = run(|node| node.policy(policy()).handler("q", async |_: u64, _: Context| throw())).await;
    assert_eq!(books.failed, MESSAGES);
    let books = run(|node| node.policy(policy()).handler_blocking("q", |_: u64, _: Context| throw())).await;
    assert_eq!(books.failed, MESSAGES);
    let books = run(|node| {
        let observed = node.observed_by(Arc::new(Thrower));
        observed.handler("q", async |_: u64, _: Context| Ok(Done::default()))
    })
    .await;
    assert_eq!(books.done, MESSAGES);
}

struct Thrower;

impl Observer for Thrower {
    fn on_event(&self, _: &Event) {
        throw()
    }
}
