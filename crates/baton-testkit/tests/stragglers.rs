//! One slow message in each parcel: the source goes on, whatever its bound, because only what is left counts.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{sync::Arc, time::Duration};

use baton::{
    Batch, BoxFuture, Done, Fleet, FleetOptions, Flow, Name, QueuePolicy, Shutdown, Source, SourceError, Stream,
    store::{Books, Recount, Store, TakeSurvey},
};
use baton_testkit::{on_every_store, subject::test_fleet};
use tokio::sync::watch;

/// Messages of a batch, and so of a parcel.
const PARCEL: u64 = 256;
/// How many of them the source has.
const PARCELS: u64 = 40;
/// About three parcels; all stragglers together count for less.
const BOUND: u64 = 80_000;

/// Numbers from 1 on, each a text of a hundred characters.
struct Numbers;

impl Source for Numbers {
    fn definition(&self) -> String {
        "numbers".to_owned()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let at = cursor.parse().unwrap_or(0);
        Box::pin(async move { Ok(Box::new(Counting(at)) as Box<dyn Stream>) })
    }
}

struct Counting(u64);

impl Stream for Counting {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            for _ in 0..PARCEL {
                self.0 += 1;
                batch.add(format!("\"{:<100}\"", self.0).as_bytes())?;
            }
            batch.reach(self.0);
            Ok(if self.0 == PARCEL * PARCELS { Flow::End } else { Flow::More })
        })
    }
}

struct Setting {
    fleet: Fleet,
}

impl Setting {
    fn over(store: Arc<dyn Store>) -> Self {
        Self { fleet: Fleet::over(store, FleetOptions::new(test_fleet())) }
    }

    async fn books(&self) -> Books {
        let queues = self.fleet.ask(TakeSurvey).await.unwrap().queues;
        let found = queues.into_iter().find(|books| books.queue.as_str() == "messages");
        found.unwrap_or_else(|| Books::new(Name::new("messages").unwrap()))
    }

    async fn until_done(&self, count: u64) {
        let waiting = async {
            while self.books().await.done < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "never: {count} are done: {:?}", self.books().await);
    }

    async fn balanced(&self) {
        let recounted = self.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
        let is_exact = recounted.queues.iter().all(|queue| queue.balance() && queue.bytes() == queue.books.bytes);
        assert!(is_exact, "{recounted:?}");
    }
}

on_every_store! {
    a_source_at_a_small_bound_goes_on_while_a_straggler_of_each_parcel_runs
}

async fn a_source_at_a_small_bound_goes_on_while_a_straggler_of_each_parcel_runs(setting: Setting) {
    let (open, gate) = watch::channel(false);
    let concurrency = usize::try_from(PARCELS).unwrap() + 8;
    let policy = QueuePolicy { concurrency, ..QueuePolicy::default() };
    let node = setting.fleet.node().max_queue_bytes(BOUND).policy(policy).source("numbers", Numbers);
    let node = node.handler("messages", move |number: String, _| {
        let mut gate = gate.clone();
        async move {
            if number.trim_end().parse::<u64>().unwrap() % PARCEL == PARCEL / 2 {
                gate.wait_for(|open| *open).await.ok();
            }
            Ok(Done::default())
        }
    });
    let shutdown = Shutdown::new();
    let running = tokio::spawn(node.run(shutdown.clone()));
    setting.until_done(PARCELS * (PARCEL - 1)).await;
    let books = setting.books().await;
    assert_eq!((books.pushed, books.in_flight), (PARCEL * PARCELS, PARCELS));
    assert!(books.bytes < BOUND / 10, "{books:?}");
    setting.balanced().await;
    open.send(true).unwrap();
    setting.until_done(PARCELS * PARCEL).await;
    assert_eq!(setting.books().await.bytes, 0);
    shutdown.graceful();
    running.await.unwrap().unwrap();
    setting.balanced().await;
}
