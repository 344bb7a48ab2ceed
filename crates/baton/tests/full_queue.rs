//! A full queue: those who wait for room ask for it, and send their bodies again only when there is some.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test stops at what it did not expect"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use baton::{
    Done, Fleet, FleetOptions, Key, Name, SessionId, Shutdown,
    admin::{Admin, Import, Inputs},
    builtin::Tick,
    store::{
        Answer, BoxFuture, MemoryStore, Request, Store, StoreError, TakeSurvey, Waiting, Woken, session::SessionOptions,
    },
};

/// A store in memory that counts what brings bodies, and what asks for room.
#[derive(Clone, Default)]
struct Counting {
    inner: MemoryStore,
    bodies: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Counting {
    /// Waits until room was asked for often; how often bodies were brought by then.
    async fn bodies_after_many_questions(&self) -> usize {
        let enough = self.asked.load(Ordering::SeqCst) + 5;
        until(|| self.asked.load(Ordering::SeqCst) >= enough).await;
        self.bodies.load(Ordering::SeqCst)
    }
}

impl Store for Counting {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        match &request {
            Request::Submit(_) | Request::Push(_) => self.bodies.fetch_add(1, Ordering::SeqCst),
            Request::Progress(_) => self.asked.fetch_add(1, Ordering::SeqCst),
            _ => 0,
        };
        self.inner.call(request)
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it comes");
}

/// A fleet whose queues hold a few bytes, and its store.
fn fleet() -> (Fleet, Counting) {
    let (store, name) = (Counting::default(), Name::new("test").unwrap());
    let session = SessionOptions { max_queue_bytes: 200, ..SessionOptions::client() };
    (Fleet::over(Arc::new(store.clone()), FleetOptions { session, ..FleetOptions::new(name) }), store)
}

/// Works off the queue `messages` until so many are done.
async fn work_off(fleet: &Fleet, count: u64) {
    let shutdown = Shutdown::new();
    let node = fleet.node().handler("messages", async |_: serde_json::Value, _| Ok(Done::default()));
    let node = tokio::spawn(node.run(shutdown.clone()));
    let done = async {
        while fleet.ask(TakeSurvey).await.unwrap().queues[0].done < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("all is done");
    shutdown.graceful();
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_push_to_a_full_queue_asks_for_room_without_its_body() {
    let (fleet, store) = fleet();
    let queue = fleet.queue::<str>("messages");
    queue.push(&"x".repeat(190)).await.unwrap();
    let waiting = tokio::spawn({
        let queue = fleet.queue::<str>("messages");
        async move { queue.push(&"y".repeat(190)).await.unwrap() }
    });
    assert_eq!(store.bodies_after_many_questions().await, 2);
    work_off(&fleet, 2).await;
    assert_eq!((waiting.await.unwrap().0, store.bodies.load(Ordering::SeqCst)), (2, 3));
}

#[tokio::test]
async fn a_source_of_a_full_queue_asks_for_room_without_its_batches() {
    let (fleet, store) = fleet();
    fleet.queue::<str>("messages").push(&"x".repeat(190)).await.unwrap();
    let shutdown = Shutdown::new();
    let node = fleet.node().max_queue_bytes(200).source("ticks", Tick::every(Duration::ZERO).count(2_000));
    let node = tokio::spawn(node.run(shutdown.clone()));
    let before = store.bodies_after_many_questions().await;
    assert_eq!(store.bodies_after_many_questions().await, before);
    work_off(&fleet, 2_001).await;
    shutdown.graceful();
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_import_into_a_full_queue_asks_for_room_without_its_lines() {
    for key in [None, Some("k")] {
        let (fleet, store) = fleet();
        fleet.queue::<str>("messages").push(&"x".repeat(190)).await.unwrap();
        let admin = Admin::new(&fleet).wait(Duration::from_secs(30));
        let import =
            Import { key: key.map(|key| Key::new(key).unwrap()), ..Import::to(Name::new("messages").unwrap()) };
        let waiting = tokio::spawn(async move {
            let mut inputs = Inputs::new();
            inputs.body(format!("\"{}\"", "y".repeat(190)));
            admin.import(inputs, &import, &Shutdown::new(), |_| {}).await.map(|_| ())
        });
        assert_eq!(store.bodies_after_many_questions().await, 2, "{key:?}");
        work_off(&fleet, 2).await;
        waiting.await.unwrap().unwrap();
        assert_eq!(store.bodies.load(Ordering::SeqCst), 3, "{key:?}");
    }
}
