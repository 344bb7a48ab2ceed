//! A store that has room for nothing new: what brings nothing is settled, a drain ends, and what was left comes later.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use baton::{
    Cancel, Context, Done, Failure, Fleet, FleetOptions, NodeError, QueuePolicy, SessionId,
    store::{Answer, Books, BoxFuture, MemoryStore, Recount, Request, Store, StoreError, TakeSurvey, Waiting, Woken},
};
use baton_testkit::subject::test_fleet;
use tokio::task::JoinHandle;

/// A store that refuses reports with new bodies while it is full.
#[derive(Clone)]
struct FullStore {
    inner: Arc<dyn Store>,
    is_full: Arc<AtomicBool>,
}

impl Store for FullStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        let is_refused =
            matches!(request, Request::Settle(_)) && request.new_bodies().is_some() && self.is_full.load(SeqCst);
        if is_refused {
            return Box::pin(async { Err(StoreError::NoRoom("the disk is full".to_owned())) });
        }
        self.inner.call(request)
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.apart(), ..self.clone() })
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

struct Setting {
    fleet: Fleet,
    is_full: Arc<AtomicBool>,
}

impl Setting {
    fn new() -> Self {
        let is_full = Arc::new(AtomicBool::new(true));
        let store = FullStore { inner: Arc::new(MemoryStore::default()), is_full: is_full.clone() };
        Self { fleet: Fleet::over(Arc::new(store), FleetOptions::new(test_fleet())), is_full }
    }

    /// A node of two queues; a message 1 leaves a result.
    fn start(&self, cancel: &Cancel) -> JoinHandle<Result<(), NodeError>> {
        let handler = |number: u64, _: Context| async move {
            Ok::<_, Failure>(if number == 1 { Done::with(&"a result")? } else { Done::default() })
        };
        let policy = QueuePolicy { concurrency: 4, ..QueuePolicy::default() };
        let node = self.fleet.node().policy(policy).handler("a", handler).handler("b", handler);
        let cancel = cancel.clone();
        tokio::spawn(async move { node.run(cancel).await })
    }

    async fn books(&self, queue: &str) -> Books {
        let queues = self.fleet.ask(TakeSurvey).await.unwrap().queues;
        queues.into_iter().find(|books| books.queue.as_str() == queue).unwrap()
    }

    async fn until_done(&self, queue: &str, count: u64) {
        let waiting = async {
            while self.books(queue).await.done < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(30), waiting).await.is_ok(), "{:?}", self.books(queue).await);
    }
}

#[tokio::test]
async fn what_brings_nothing_is_settled_and_a_drain_ends_on_a_full_store() {
    let setting = Setting::new();
    setting.fleet.queue::<u64>("a").push_all(1..=50).await.unwrap();
    setting.fleet.queue::<u64>("b").push_all(2..=50).await.unwrap();
    let cancel = Cancel::new();
    let node = setting.start(&cancel);
    setting.until_done("a", 49).await;
    setting.until_done("b", 49).await;
    assert_eq!(setting.books("a").await.in_flight, 1, "the one with a result is not lost");
    cancel.drain();
    tokio::time::timeout(Duration::from_secs(30), node).await.expect("the drain ends").unwrap().unwrap();
    let books = setting.books("a").await;
    assert_eq!((books.ready, books.in_flight, books.done), (1, 0, 49), "it went back");

    let cancel = Cancel::new();
    let node = setting.start(&cancel);
    let begun = async {
        while setting.books("a").await.in_flight == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), begun).await.expect("it runs again");
    setting.is_full.store(false, SeqCst);
    setting.until_done("a", 50).await;
    let result = setting.fleet.queue::<u64>("a").result::<String>(baton::MessageId(1)).await.unwrap();
    assert_eq!(result.as_deref(), Some("a result"));
    cancel.drain();
    node.await.unwrap().unwrap();
    let recounted = setting.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
}
