//! A store that has room for nothing new: what brings nothing is settled, a drain ends, and what was left comes later.
//! Once over a store that refuses what a full disk would, once over a Redis server at its maxmemory.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use baton::{
    Context, Done, Failure, Fleet, FleetOptions, Name, NodeError, QueuePolicy, SessionId, Shutdown,
    store::{
        Answer, Books, BoxFuture, Kind, MemoryStore, Recount, RedisOptions, RedisStore, Request, Store, StoreError,
        SubmissionVerdict, TakeSurvey, Waiting, Woken, ask,
        message::{Body, Outcome, Parcel, Range, Run, Submission},
        session::{Reported, Session, SessionOptions},
    },
};
use baton_testkit::{
    server::{Persistence, RedisServer},
    subject::test_fleet,
};
use tokio::task::JoinHandle;

/// A store that refuses what brings new bodies while it is full, by reports and by submits.
#[derive(Clone)]
struct FullStore {
    inner: Arc<dyn Store>,
    is_full: Arc<AtomicBool>,
}

impl Store for FullStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        let is_refused = matches!(request, Request::Settle(_) | Request::Submit(_))
            && request.new_bodies().is_some()
            && self.is_full.load(SeqCst);
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

/// A store that loses the answer to the first report with new bodies, or that report, and has no room for it then.
struct LosingStore {
    inner: MemoryStore,
    carries_out: bool,
    lost: AtomicBool,
}

impl Store for LosingStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        if !matches!(request, Request::Settle(_)) || request.new_bodies().is_none() {
            return self.inner.call(request);
        }
        Box::pin(async move {
            if self.lost.swap(true, SeqCst) {
                return Err(StoreError::NoRoom("at its maxmemory".to_owned()));
            }
            if self.carries_out {
                self.inner.call(request).await?;
            }
            Err(StoreError::Unreachable("the connection was lost".to_owned()))
        })
    }

    fn apart(&self) -> Arc<dyn Store> {
        self.inner.apart()
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.inner.wait(session, waiting)
    }
}

/// What fills a store, and makes room again.
trait Fill {
    fn fill(&self, is_full: bool);
}

impl Fill for Arc<AtomicBool> {
    fn fill(&self, is_full: bool) {
        self.store(is_full, SeqCst);
    }
}

impl Fill for RedisServer {
    fn fill(&self, is_full: bool) {
        let mut connection = redis::Client::open(self.url()).unwrap().get_connection().unwrap();
        let most = u8::from(is_full);
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(most).exec(&mut connection).unwrap();
    }
}

struct Setting<F> {
    fleet: Fleet,
    fill: F,
}

impl Setting<Arc<AtomicBool>> {
    fn refusing() -> Self {
        let is_full = Arc::new(AtomicBool::new(false));
        let store = FullStore { inner: Arc::new(MemoryStore::default()), is_full: is_full.clone() };
        Self { fleet: Fleet::over(Arc::new(store), FleetOptions::new(test_fleet())), fill: is_full }
    }
}

impl Setting<RedisServer> {
    fn in_redis() -> Self {
        let server = RedisServer::start(Persistence::None);
        let store = RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).unwrap();
        Self { fleet: Fleet::over(Arc::new(store), FleetOptions::new(test_fleet())), fill: server }
    }
}

impl<F: Fill> Setting<F> {
    /// A node of two queues; a message 1 leaves a result, a message 2 a follow-up that is long, in a queue without a node.
    fn start(&self, shutdown: &Shutdown) -> JoinHandle<Result<(), NodeError>> {
        let handler = |number: u64, _: Context| async move {
            Ok::<_, Failure>(match number {
                1 => Done::with(&"a result")?,
                2 => Done::default().then("next", &"x".repeat(100_000))?,
                _ => Done::default(),
            })
        };
        let policy = QueuePolicy { concurrency: 4, ..QueuePolicy::default() };
        let node = self.fleet.node().policy(policy).handler("a", handler).handler("b", handler);
        let shutdown = shutdown.clone();
        tokio::spawn(async move { node.run(shutdown).await })
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
    over_a_full_store(&Setting::refusing()).await;
}

#[tokio::test]
async fn what_brings_nothing_is_settled_and_a_drain_ends_at_maxmemory() {
    over_a_full_store(&Setting::in_redis()).await;
}

async fn over_a_full_store<F: Fill>(setting: &Setting<F>) {
    setting.fleet.queue::<u64>("a").push_all(1..=50).await.unwrap();
    setting.fleet.queue::<u64>("b").push_all(3..=50).await.unwrap();
    setting.fill.fill(true);
    let shutdown = Shutdown::new();
    let node = setting.start(&shutdown);
    setting.until_done("a", 48).await;
    setting.until_done("b", 48).await;
    assert_eq!(setting.books("a").await.in_flight, 2, "those that bring something are not lost");
    shutdown.graceful();
    tokio::time::timeout(Duration::from_secs(30), node).await.expect("the drain ends").unwrap().unwrap();
    let books = setting.books("a").await;
    assert_eq!((books.ready, books.in_flight, books.done), (2, 0, 48), "they went back");

    let shutdown = Shutdown::new();
    let node = setting.start(&shutdown);
    let begun = async {
        while setting.books("a").await.in_flight < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), begun).await.expect("they run again");
    setting.fill.fill(false);
    setting.until_done("a", 50).await;
    let result = setting.fleet.queue::<u64>("a").result::<String>(baton::MessageId(1)).await.unwrap();
    assert_eq!(result.as_deref(), Some("a result"));
    assert_eq!(setting.books("next").await.ready, 1, "one follow-up");
    shutdown.graceful();
    node.await.unwrap().unwrap();
    let recounted = setting.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
}

#[tokio::test]
async fn a_report_that_may_have_been_carried_out_holds_up_no_others_on_a_full_store() {
    for carries_out in [true, false] {
        let inner = MemoryStore::default();
        let store: Arc<dyn Store> =
            Arc::new(LosingStore { inner: inner.clone(), carries_out, lost: AtomicBool::new(false) });
        let queue = Name::new("q").unwrap();
        let options = SessionOptions { kind: Kind::Node, queues: vec![queue.clone()], ..SessionOptions::client() };
        let session = Session::join(store, options).await.unwrap();
        let submission = |body: &[u8]| Submission {
            queue: queue.clone(),
            parcel: Parcel::single(Body::new(body).unwrap()),
            key: None,
            call: None,
        };
        session.submit(vec![submission(b"1"), submission(b"2")], None).await.unwrap();
        let held = session.claim(queue.clone(), 2, 1 << 20).await.unwrap().held.unwrap();
        let (claim_no, queue, _) = held.into_parts();
        let run = |first, outcome| Run { claim_no, queue: queue.clone(), range: Range { first, len: 1 }, outcome };
        let bringing = Outcome::Done { result: Some("1".into()), follow_ups: Vec::new() };
        assert_eq!(session.settle(vec![run(1, bringing)]).await.unwrap(), Reported::default());
        assert_eq!(session.settle(vec![run(2, Outcome::DONE)]).await.unwrap(), Reported::default());
        let recounted = ask(&inner, Recount { max_hold_ms: 10_000 }).await.unwrap();
        let of_queue = recounted.queues.first().unwrap();
        assert!(of_queue.balance());
        let expected = if carries_out { (2, 0, 0) } else { (1, 1, 0) };
        assert_eq!((of_queue.books.done, of_queue.books.ready, of_queue.books.in_flight), expected);
        session.leave().await.unwrap();
    }
}

fn submissions(count: u64) -> impl Iterator<Item = Submission> {
    let parcel = |number: u64| Parcel::single(Body::new(number.to_string().as_bytes()).unwrap());
    (1..=count).map(move |number| Submission {
        queue: Name::new("q").unwrap(),
        parcel: parcel(number),
        key: None,
        call: None,
    })
}

/// Who wants no more than room is told at once that there is none, however many there are, and nothing of it is stored
/// later; who waits for room gets it, and so does who comes then.
async fn pushed_to_a_full_store<F: Fill>(setting: &Setting<F>) {
    let session = setting.fleet.session().await.unwrap();
    session.submit(submissions(1).collect(), None).await.unwrap();
    setting.fill.fill(true);
    let pushes: Vec<_> = submissions(50)
        .map(|submission| {
            let session = session.clone();
            tokio::spawn(async move { session.submit_if_room(vec![submission]).await })
        })
        .collect();
    for push in pushes {
        let refused = tokio::time::timeout(Duration::from_secs(30), push).await.expect("at once").unwrap().unwrap_err();
        assert!(matches!(refused.error, StoreError::NoRoom(_)) && !refused.maybe_stored, "{refused:?}");
    }
    let patient = tokio::spawn({
        let session = session.clone();
        async move { session.submit(submissions(1).collect(), None).await }
    });
    setting.fill.fill(false);
    tokio::time::timeout(Duration::from_secs(30), patient).await.expect("there is room").unwrap().unwrap();
    let again = async {
        while session.submit_if_room(submissions(1).collect()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("there is room");
    assert_eq!(setting.books("q").await.pushed, 3);
}

#[tokio::test]
async fn what_finds_no_room_is_told_at_once_and_not_stored_later() {
    pushed_to_a_full_store(&Setting::refusing()).await;
    pushed_to_a_full_store(&Setting::in_redis()).await;
}

#[tokio::test]
async fn what_was_not_sent_goes_with_its_caller() {
    let is_full = Arc::new(AtomicBool::new(true));
    let store = FullStore { inner: Arc::new(MemoryStore::default()), is_full: is_full.clone() };
    let session = Session::join(Arc::new(store), SessionOptions::client()).await.unwrap();
    // These wait for room, in as many calls as may be under way, and behind them whatever comes.
    let mut patient = Vec::new();
    for submission in submissions(4) {
        let session = session.clone();
        patient.push(tokio::spawn(async move { session.submit(vec![submission], None).await }));
        tokio::task::yield_now().await;
    }
    let left = tokio::time::timeout(Duration::from_millis(1), session.submit_if_room(submissions(1).collect())).await;
    assert!(!matches!(left, Ok(Ok(_))), "{left:?}");
    is_full.store(false, SeqCst);
    for push in patient {
        push.await.unwrap().unwrap();
    }
    let verdicts = session.submit(submissions(1).collect(), None).await.unwrap();
    assert_eq!(verdicts, [SubmissionVerdict::Stored { first: 5 }], "what was left is not among them");
    session.leave().await.unwrap();
}
