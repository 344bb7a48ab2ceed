//! Work that is not quick and equal: slow among quick, handlers that block or burn their thread, in one node and in two.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use baton::{
    Context, Done, Failure, Fleet, FleetOptions, Name, Node, NodeError, QueuePolicy, Shutdown,
    store::{Books, Leave, Peek, Recount, Store, Survey, TakeSurvey},
};
use baton_testkit::{on_every_store, subject::test_fleet};
use tokio::{sync::watch, task::JoinHandle};

struct Setting {
    fleet: Fleet,
}

impl Setting {
    fn over(store: Arc<dyn Store>) -> Self {
        Self { fleet: Fleet::over(store, FleetOptions::new(test_fleet())) }
    }

    /// A node whose queues have this concurrency.
    fn node(&self, concurrency: usize) -> Node {
        self.fleet.node().policy(QueuePolicy { concurrency, ..QueuePolicy::default() })
    }

    async fn push(&self, queue: &str, bodies: impl IntoIterator<Item = u64>) {
        self.fleet.queue::<u64>(queue).push_all(bodies).await.unwrap();
    }

    async fn survey(&self) -> Survey {
        self.fleet.ask(TakeSurvey).await.unwrap()
    }

    async fn books(&self, queue: &str) -> Books {
        let found = self.survey().await.queues.into_iter().find(|books| books.queue.as_str() == queue);
        found.unwrap_or_else(|| Books::new(Name::new(queue).unwrap()))
    }

    async fn until_done(&self, queue: &str, count: u64) {
        let waiting = async {
            while self.books(queue).await.done < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "never: {count} of {queue} are done: {:?}", self.survey().await);
    }

    async fn balanced(&self) {
        let recounted = self.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
        assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "never: {what}");
}

/// A node at work.
struct Running {
    shutdown: Shutdown,
    task: JoinHandle<Result<(), NodeError>>,
}

impl Running {
    fn start(node: Node) -> Self {
        let shutdown = Shutdown::new();
        Self { task: tokio::spawn(node.run(shutdown.clone())), shutdown }
    }

    async fn drain(self) {
        self.shutdown.graceful();
        self.task.await.unwrap().unwrap();
    }
}

/// A gate that threads wait at.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Blocks its thread.
    fn pass(&self) {
        let opened = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), Duration::from_secs(60), |open| !*open);
        assert!(*opened.unwrap().0, "the gate was never opened");
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // A test that fails leaves no thread behind.
        if Arc::strong_count(&self.0) == 1 {
            self.open();
        }
    }
}

on_every_store! {
    quick_messages_do_not_wait_behind_slow_ones
    handlers_run_on_every_core
    a_blocked_thread_holds_up_only_its_own_message
    concurrency_one_keeps_the_order_of_claims
    failures_of_any_kind_are_told_in_either_mode
    a_thread_of_an_earlier_session_is_no_free_permit
}

/// The node that has claimed them cannot begin them: they go back, and the other one does them.
async fn quick_messages_do_not_wait_behind_slow_ones(setting: Setting) {
    const SLOW: u64 = 64;
    const QUICK: u64 = 12_000;
    let (begun, release) = (Arc::new(AtomicUsize::new(0)), watch::Sender::new(false));
    let node = || {
        let (begun, released) = (begun.clone(), release.subscribe());
        setting.node(64).handler("messages", move |body: u64, _| {
            let (begun, mut released) = (begun.clone(), released.clone());
            async move {
                if body == 0 {
                    begun.fetch_add(1, SeqCst);
                    released.wait_for(|released| *released).await.ok();
                }
                Ok(Done::default())
            }
        })
    };
    // The one that gets the slow ones has been quick so far, and claims ahead.
    let full = Running::start(node());
    setting.push("messages", 1..=5_000).await;
    setting.until_done("messages", 5_000).await;
    setting.push("messages", (0..SLOW).map(|_| 0).chain(1..=QUICK)).await;
    until("all slow ones run", || begun.load(SeqCst) == SLOW as usize).await;
    let (idle, start) = (Running::start(node()), Instant::now());
    setting.until_done("messages", 5_000 + QUICK).await;
    let took = start.elapsed();
    assert_eq!(begun.load(SeqCst), SLOW as usize, "the slow ones still run where they were begun");
    assert!(took < Duration::from_secs(2), "{took:?}");
    release.send_replace(true);
    setting.until_done("messages", 5_000 + QUICK + SLOW).await;
    full.drain().await;
    idle.drain().await;
    setting.balanced().await;
}

/// Two handlers that each hold their thread until the other one has begun: they end only if they run side by side.
async fn handlers_run_on_every_core(setting: Setting) {
    let at_work = Arc::new(AtomicUsize::new(0));
    let counted = at_work.clone();
    let node = Running::start(setting.node(64).handler("messages", move |body: u64, _| {
        let counted = counted.clone();
        async move {
            if body == 0 {
                counted.fetch_add(1, SeqCst);
                let end = Instant::now() + Duration::from_secs(60);
                while counted.load(SeqCst) < 2 {
                    if Instant::now() > end {
                        return Err(Failure::fatal("alone"));
                    }
                    std::hint::spin_loop();
                }
            }
            Ok(Done::default())
        }
    }));
    // First as they come to a node that knows nothing of them, then in one that has been quick with thousands.
    setting.push("messages", [0, 0]).await;
    setting.until_done("messages", 2).await;
    at_work.store(0, SeqCst);
    setting.push("messages", 1..=5_000).await;
    setting.until_done("messages", 5_002).await;
    setting.push("messages", [1, 2, 3, 0, 4, 0, 5]).await;
    setting.until_done("messages", 5_009).await;
    node.drain().await;
}

/// Neither others of its queue nor other queues, nor their claims and reports.
async fn a_blocked_thread_holds_up_only_its_own_message(setting: Setting) {
    let (gate, blocked) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let (passed, told) = (gate.clone(), blocked.clone());
    let node = setting.node(64).handler("uneven", move |body: u64, _| {
        let (passed, told) = (passed.clone(), told.clone());
        async move {
            if body == 0 {
                told.store(true, SeqCst);
                passed.pass();
            }
            Ok(Done::default())
        }
    });
    let node = Running::start(node.handler("quick", async |_: u64, _| Ok(Done::default())));
    setting.push("uneven", (1..=2_000).chain([0]).chain(1..=2_000)).await;
    until("a thread is blocked", || blocked.load(SeqCst)).await;
    setting.push("quick", 1..=2_000).await;
    setting.until_done("quick", 2_000).await;
    // What was run in one handful with it, and before it, is told with it.
    setting.until_done("uneven", 4_000 - 15).await;
    gate.open();
    setting.until_done("uneven", 4_001).await;
    node.drain().await;
    setting.balanced().await;
}

async fn concurrency_one_keeps_the_order_of_claims(setting: Setting) {
    const LAST: u64 = 3_000;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let node = setting.node(1).handler("messages", move |body: u64, _| {
        let noted = noted.clone();
        async move {
            // Every kind of work, so that the queue goes from one mode to the other and back.
            match body {
                1_500 => std::thread::sleep(Duration::from_millis(30)),
                // Those claimed ahead go back meanwhile.
                body if body.is_multiple_of(250) => tokio::time::sleep(Duration::from_millis(150)).await,
                body if body.is_multiple_of(300) => tokio::time::sleep(Duration::from_millis(2)).await,
                body if body.is_multiple_of(7) && body < 200 => tokio::task::yield_now().await,
                _ => {}
            }
            noted.lock().unwrap().push(body);
            Ok(Done::default())
        }
    });
    setting.push("messages", 1..=LAST).await;
    let node = Running::start(node);
    setting.until_done("messages", LAST).await;
    node.drain().await;
    let seen = seen.lock().unwrap();
    let stray = seen.iter().zip(1..).find(|(body, place)| **body != *place);
    assert_eq!(stray, None, "the first out of its place, of {}", seen.len());
}

async fn failures_of_any_kind_are_told_in_either_mode(setting: Setting) {
    let policy = QueuePolicy { timeout: Some(Duration::from_millis(300)), ..QueuePolicy::default() };
    let gate = Gate::default();
    let passed = gate.clone();
    let node = setting.fleet.node().policy(policy);
    let node = node.handler("async", |body: u64, _| {
        assert!(body != 1, "called");
        async move {
            match body {
                2 => panic!("polled"),
                3 => std::future::pending().await,
                4 => {
                    tokio::task::yield_now().await;
                    panic!("polled again")
                }
                _ => Err(Failure::fatal("failed")),
            }
        }
    });
    let node = Running::start(node.handler_blocking("blocking", move |body: u64, context: Context| match body {
        1 => panic!("called"),
        2 => {
            passed.pass();
            Ok(Done::default())
        }
        _ => Err(Failure::fatal(context.attempt())),
    }));
    for queue in ["async", "blocking"] {
        let last = if queue == "async" { 5 } else { 3 };
        setting.push(queue, 1..=last).await;
        let waiting = async {
            while setting.books(queue).await.failed < last {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "{:?}", setting.survey().await);
        let peek = Peek { queue: Name::new(queue).unwrap(), after: 0, upto: 9, limit: 9, max_bytes: 1 << 20 };
        let errors = setting.fleet.ask(peek).await.unwrap().errors;
        let told: BTreeSet<String> = errors.into_iter().map(|error| format!("{} {}", error.id, error.error)).collect();
        let late = "it took longer than its timeout of 300ms";
        let expected = match queue {
            "async" => vec![
                "1 the handler panicked: called".to_owned(),
                "2 the handler panicked: polled".to_owned(),
                format!("3 {late}"),
                "4 the handler panicked: polled again".to_owned(),
                "5 failed".to_owned(),
            ],
            _ => vec!["1 the handler panicked: called".to_owned(), format!("2 {late}"), "3 1".to_owned()],
        };
        assert!(told.iter().eq(expected.iter()), "{told:?}");
    }
    gate.open();
    node.drain().await;
    setting.balanced().await;
}

/// Functions that nobody can break off keep their permits over the end of their session.
async fn a_thread_of_an_earlier_session_is_no_free_permit(setting: Setting) {
    const CONCURRENCY: usize = 2;
    let (gate, at_work, most) = (Gate::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (passed, counted, peak) = (gate.clone(), at_work.clone(), most.clone());
    let node = setting.node(CONCURRENCY).handler_blocking("messages", move |_: u64, _| {
        peak.fetch_max(counted.fetch_add(1, SeqCst) + 1, SeqCst);
        passed.pass();
        counted.fetch_sub(1, SeqCst);
        Ok(Done::default())
    });
    let node = Running::start(node);
    setting.push("messages", 1..=6).await;
    until("both threads are held", || at_work.load(SeqCst) == CONCURRENCY).await;
    for _ in 0..2 {
        let former = setting.survey().await.sessions.into_iter().find(|view| !view.queues.is_empty()).unwrap().session;
        setting.fleet.ask(Leave { session: former }).await.unwrap();
        let waiting = async {
            while setting.survey().await.sessions.iter().all(|view| view.queues.is_empty() || view.session == former) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "it never joined anew");
    }
    assert_eq!(setting.books("messages").await.in_flight, 0, "it claims nothing without a permit");
    gate.open();
    setting.until_done("messages", 6).await;
    node.drain().await;
    assert_eq!(most.load(SeqCst), CONCURRENCY);
    setting.balanced().await;
}
