//! Nodes through the library, on every store: one generator, many workers, nothing lost on the way.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use baton::{
    Batch, BoxFuture, Done, Event, Failure, Fleet, FleetOptions, Flow, MessageId, Name, Node, Observer, QueuePolicy,
    Role, Shutdown, Source, SourceError, Stream,
    store::{Books, Leave, Peek, ReadResult, Recount, Store, Survey, TakeSurvey},
};
use baton_testkit::{on_every_store, subject::test_fleet};

/// The numbers from 1 on, up to a last one; with a pause, twenty at a time.
struct Numbers {
    last: u64,
    pause: Option<Duration>,
}

impl Source for Numbers {
    fn definition(&self) -> String {
        "numbers".to_owned()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let at = cursor.parse().unwrap_or(0);
        let &Self { last, pause } = self;
        Box::pin(async move { Ok(Box::new(Counting { at, last, pause }) as Box<dyn Stream>) })
    }
}

struct Counting {
    at: u64,
    last: u64,
    pause: Option<Duration>,
}

impl Stream for Counting {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            let mut last = self.last;
            if let Some(pause) = self.pause {
                tokio::time::sleep(pause).await;
                last = last.min(self.at + 20);
            }
            while self.at < last && !batch.is_full() {
                self.at += 1;
                batch.add(self.at.to_string().as_bytes())?;
            }
            batch.reach(self.at);
            Ok(if self.at == self.last { Flow::End } else { Flow::More })
        })
    }
}

/// How often each number was run.
type Seen = Arc<Mutex<BTreeMap<u64, u32>>>;

struct Setting {
    fleet: Fleet,
    seen: Seen,
}

impl Setting {
    fn over(store: Arc<dyn Store>) -> Self {
        Self { fleet: Fleet::over(store, FleetOptions::new(test_fleet())), seen: Seen::default() }
    }

    /// A node that offers the numbers and notes what it runs.
    fn node(&self, last: u64) -> Node {
        self.node_with(Numbers { last, pause: None })
    }

    fn slow_node(&self, last: u64) -> Node {
        self.node_with(Numbers { last, pause: Some(Duration::from_millis(5)) })
    }

    fn node_with(&self, numbers: Numbers) -> Node {
        let seen = self.seen.clone();
        self.fleet.node().source("numbers", numbers).handler("messages", move |number: u64, _| {
            let seen = seen.clone();
            async move {
                *seen.lock().unwrap().entry(number).or_default() += 1;
                Ok(Done::default())
            }
        })
    }

    async fn survey(&self) -> Survey {
        self.fleet.ask(TakeSurvey).await.unwrap()
    }

    async fn books(&self) -> Books {
        let books = self.survey().await.queues.into_iter().find(|books| books.queue.as_str() == "messages");
        books.unwrap_or_else(|| Books::new(name("messages")))
    }

    async fn until(&self, what: &str, mut condition: impl FnMut(&Survey, &Books) -> bool) {
        let waiting = async {
            loop {
                let survey = self.survey().await;
                let books = survey.queues.iter().find(|books| books.queue.as_str() == "messages").cloned();
                if books.is_some_and(|books| condition(&survey, &books)) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "never: {what}: {:?}", self.survey().await);
    }

    async fn balanced(&self) {
        let recounted = self.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
        assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    }
}

on_every_store! {
    a_node_alone_does_everything
    a_killed_generator_is_replaced_where_it_stood
    failures_are_retried_and_then_kept
    what_a_message_leaves_behind_is_bounded
    a_drained_node_hands_everything_back
    a_full_queue_makes_the_generator_work
    a_forgotten_node_joins_anew
    slow_work_is_spread_evenly
}

async fn a_node_alone_does_everything(setting: Setting) {
    let shutdown = Shutdown::new();
    let node = tokio::spawn(setting.node(20_000).run(shutdown.clone()));
    setting.until("all is done", |_, books| books.done == 20_000).await;
    assert!(setting.survey().await.sources.iter().all(|source| source.ended));
    shutdown.graceful();
    node.await.unwrap().unwrap();
    assert!(setting.survey().await.sessions.is_empty(), "it left");
    assert!(setting.seen.lock().unwrap().keys().copied().eq(1..=20_000));
    assert!(setting.seen.lock().unwrap().values().all(|times| *times == 1));
    setting.balanced().await;
}

/// Knows which node pushed last.
struct Watcher {
    me: usize,
    last: Arc<AtomicUsize>,
}

impl Observer for Watcher {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::Pushed { .. }) {
            self.last.store(self.me, Ordering::Relaxed);
        }
    }
}

async fn a_killed_generator_is_replaced_where_it_stood(setting: Setting) {
    const LAST: u64 = 8_000;
    let (shutdown, pusher) = (Shutdown::new(), Arc::new(AtomicUsize::new(usize::MAX)));
    let start = |me| {
        let observer = Arc::new(Watcher { me, last: pusher.clone() });
        tokio::spawn(setting.slow_node(LAST).observed_by(observer).run(shutdown.clone()))
    };
    let mut nodes: Vec<_> = (0..3).map(start).collect();
    for round in 1..=2 {
        setting.until("the source goes on", |_, books| books.pushed > round * 1_000).await;
        let killed = pusher.load(Ordering::Relaxed);
        nodes[killed].abort();
        let next = nodes.len();
        nodes.push(start(next));
        setting
            .until("another one generates", |survey, books| {
                survey.sources[0].holder.is_some() && pusher.load(Ordering::Relaxed) != killed && books.pushed < LAST
            })
            .await;
    }
    setting.until("all is done", |_, books| books.done == LAST).await;
    shutdown.graceful();
    for node in nodes {
        // Those that were killed end with an error.
        node.await.map_or(Ok(()), |ended| ended).unwrap();
    }
    assert!(setting.seen.lock().unwrap().keys().copied().eq(1..=LAST), "no gap and no repeat in the source");
    assert_eq!(setting.books().await.pushed, LAST);
    setting.balanced().await;
}

async fn failures_are_retried_and_then_kept(setting: Setting) {
    let policy = QueuePolicy { retries: 2, backoff: Duration::from_millis(1), ..QueuePolicy::default() };
    let node = setting.fleet.node().policy(policy).source("numbers", Numbers { last: 4, pause: None });
    let node = node.handler("messages", |number: u64, context| async move {
        match (number, context.attempt()) {
            (1, _) => Err(Failure::fatal("never")),
            (2, attempt) => Err(Failure::new(format_args!("attempt {attempt}"))),
            (3, 1) => panic!("once"),
            _ => Ok(Done::with(&number)?.then("other", &number)?),
        }
    });
    let shutdown = Shutdown::new();
    let node = tokio::spawn(node.run(shutdown.clone()));
    setting.until("two are done, two are dead", |_, books| (books.done, books.failed) == (2, 2)).await;
    shutdown.graceful();
    node.await.unwrap().unwrap();
    let peek = Peek { queue: name("messages"), after: 0, upto: 9, limit: 9, max_bytes: 1 << 20 };
    let errors = setting.fleet.ask(peek).await.unwrap().errors;
    let told: Vec<_> = errors.iter().map(|error| (error.id.0, error.attempts, error.error.as_str())).collect();
    assert_eq!(told, [(1, 1, "never"), (2, 3, "attempt 3")]);
    let other = setting.survey().await.queues.into_iter().find(|books| books.queue.as_str() == "other").unwrap();
    assert_eq!(other.pushed, 2, "a follow-up for each that is done");
    setting.balanced().await;
}

async fn what_a_message_leaves_behind_is_bounded(setting: Setting) {
    let node = setting.fleet.node().source("numbers", Numbers { last: 4, pause: None });
    let node = node.handler("messages", |number: u64, _| async move {
        let many = |count: usize, body: &str| (0..count).try_fold(Done::default(), |done, _| done.then("other", body));
        match number {
            1 => many(5_000, "one of many"),
            2 => many(17, &"x".repeat(1_000_000)),
            3 => Ok(Done::with(&"x".repeat(2 << 20))?),
            _ => Ok(Done::with(&"short")?),
        }
    });
    let shutdown = Shutdown::new();
    let node = tokio::spawn(node.run(shutdown.clone()));
    setting.until("three are done, one is dead", |_, books| (books.done, books.failed) == (3, 1)).await;
    shutdown.graceful();
    node.await.unwrap().unwrap();
    let peek = Peek { queue: name("messages"), after: 0, upto: 9, limit: 9, max_bytes: 1 << 20 };
    let errors = setting.fleet.ask(peek).await.unwrap().errors;
    assert_eq!(errors[0].id.0, 2);
    assert!(errors[0].error.contains("its follow-ups are "), "{}", errors[0].error);
    let other = setting.survey().await.queues.into_iter().find(|books| books.queue.as_str() == "other").unwrap();
    assert_eq!(other.pushed, 5_000, "all of one message, none of the other");
    for (id, kept) in [(3, None), (4, Some(&b"\"short\""[..]))] {
        let result = ReadResult { queue: name("messages"), id: MessageId(id) };
        assert_eq!(setting.fleet.ask(result).await.unwrap().as_deref(), kept);
    }
    setting.balanced().await;
}

async fn a_drained_node_hands_everything_back(setting: Setting) {
    let policy = QueuePolicy { concurrency: 4, ..QueuePolicy::default() };
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let node = setting.fleet.node().policy(policy).source("numbers", Numbers { last: 100, pause: None });
    let node = node.handler("messages", move |_: u64, context| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            context.cancelled().await;
            Ok(Done::default())
        }
    });
    let shutdown = Shutdown::new();
    let node = tokio::spawn(node.run(shutdown.clone()));
    setting.until("handlers are at work", |_, _| begun.load(Ordering::Relaxed) == 4).await;
    shutdown.now();
    node.await.unwrap().unwrap();
    let books = setting.books().await;
    assert_eq!((books.in_flight, books.done, books.ready), (0, 0, books.pushed), "nothing is counted as run or lost");
    let next = Shutdown::new();
    let worker = tokio::spawn(setting.node(100).run(next.clone()));
    setting.until("another node does them all", |_, books| books.done == 100).await;
    next.graceful();
    worker.await.unwrap().unwrap();
    setting.balanced().await;
}

async fn a_full_queue_makes_the_generator_work(setting: Setting) {
    let shutdown = Shutdown::new();
    let generator = tokio::spawn(setting.node(50_000).max_queue_bytes(10_000).run(shutdown.clone()));
    let idle = setting.fleet.node().role(Role::Worker).handler("elsewhere", async |_: u64, _| Ok(Done::default()));
    let idle = tokio::spawn(idle.run(shutdown.clone()));
    setting.until("the one that generates also works", |_, books| books.done == 50_000).await;
    shutdown.graceful();
    generator.await.unwrap().unwrap();
    idle.await.unwrap().unwrap();
    setting.balanced().await;
}

async fn a_forgotten_node_joins_anew(setting: Setting) {
    let shutdown = Shutdown::new();
    let node = tokio::spawn(setting.slow_node(3_000).run(shutdown.clone()));
    for _ in 0..3 {
        setting.until("it generates", |survey, _| survey.sources.iter().any(|source| source.holder.is_some())).await;
        let session = setting.survey().await.sessions[0].session;
        setting.fleet.ask(Leave { session }).await.unwrap();
        setting
            .until("a new session is there", |survey, _| {
                survey.sessions.first().is_some_and(|view| view.session != session)
            })
            .await;
    }
    setting.until("all is done", |_, books| books.done == 3_000).await;
    shutdown.graceful();
    node.await.unwrap().unwrap();
    assert!(setting.seen.lock().unwrap().keys().copied().eq(1..=3_000));
    setting.balanced().await;
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Few large parcels and many hands: nobody sits on messages that others could begin with.
async fn slow_work_is_spread_evenly(setting: Setting) {
    const NODES: u64 = 4;
    const MESSAGES: u64 = 1_600;
    let stored = setting.fleet.queue::<u64>("messages").push_all(1..=MESSAGES).await.unwrap();
    assert_eq!(stored.iter().map(|range| u64::from(range.len)).sum::<u64>(), MESSAGES);
    assert!(stored.len() < 10, "{stored:?}");
    let shutdown = Shutdown::new();
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = ran.clone();
        let policy = QueuePolicy { concurrency: 8, ..QueuePolicy::default() };
        let node = setting.fleet.node().role(Role::Worker).policy(policy).handler("messages", move |_: u64, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(Done::default())
            }
        });
        nodes.push((tokio::spawn(node.run(shutdown.clone())), ran));
    }
    setting.until("all is done", |_, books| books.done == MESSAGES).await;
    shutdown.graceful();
    let fair = MESSAGES / NODES;
    for (node, ran) in nodes {
        node.await.unwrap().unwrap();
        let ran = ran.load(Ordering::Relaxed) as u64;
        assert!((fair * 9 / 10..=fair * 11 / 10).contains(&ran), "{ran} of {fair}");
    }
    setting.balanced().await;
}
