//! Nodes while their Redis is demoted, replaced or made to forget its scripts: they wait, say so, and go on.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use baton::{
    Batch, BoxFuture, Done, Event, Fleet, FleetOptions, Flow, Node, NodeError, Observer, Shutdown, Source, SourceError,
    Stream,
    store::{Books, Recount, RedisOptions, RedisStore, StoreEvent, TakeSurvey, ask},
};
use baton_testkit::{
    proxy::Proxy,
    server::{Persistence, RedisServer},
    subject::test_fleet,
};

/// Numbers without an end, `size` bytes each, a few at a time.
struct Numbers {
    size: usize,
}

impl Source for Numbers {
    fn definition(&self) -> String {
        "numbers".to_owned()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let at = cursor.parse().unwrap_or(0);
        Box::pin(async move { Ok(Box::new(Counting { at, size: self.size }) as Box<dyn Stream>) })
    }
}

struct Counting {
    at: u64,
    size: usize,
}

impl Stream for Counting {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            for _ in 0..4 {
                self.at += 1;
                batch.add(format!("\"{:0>size$}\"", self.at, size = self.size).as_bytes())?;
            }
            batch.reach(self.at);
            Ok(Flow::More)
        })
    }
}

/// Keeps what a node tells.
#[derive(Default)]
struct Told(Mutex<Vec<Event>>);

impl Observer for Told {
    fn on_event(&self, event: &Event) {
        if !event.is_routine() {
            self.0.lock().unwrap().push(event.clone());
        }
    }
}

impl Told {
    fn count(&self, what: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| what(event)).count()
    }

    fn joined(&self) -> usize {
        self.count(|event| matches!(event, Event::Joined { .. }))
    }

    /// How often the store was away for a reason like this.
    fn away(&self, why: &str) -> usize {
        self.count(|event| matches!(event, Event::StoreAway { error } if error.to_string().contains(why)))
    }

    fn back(&self) -> usize {
        self.count(|event| matches!(event, Event::StoreBack { .. }))
    }
}

/// A node at work on one queue that its source feeds.
struct Running {
    fleet: Fleet,
    told: Arc<Told>,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<Result<(), NodeError>>,
}

impl Running {
    fn start(url: &str, size: usize) -> Self {
        let store = RedisStore::open(url, test_fleet(), RedisOptions::default()).unwrap();
        let fleet = Fleet::over(Arc::new(store), FleetOptions::new(test_fleet()));
        let (told, shutdown) = (Arc::<Told>::default(), Shutdown::new());
        let task = tokio::spawn(node(&fleet, size).observed_by(told.clone()).run(shutdown.clone()));
        Self { fleet, told, shutdown, task }
    }

    async fn books(&self) -> Option<Books> {
        let survey = ask(&**self.fleet.store(), TakeSurvey).await.ok()?;
        survey.queues.into_iter().find(|books| books.queue.as_str() == "messages")
    }

    /// How many are done, as soon as the store tells.
    async fn done(&self) -> u64 {
        self.told_books().await.done
    }

    async fn pushed(&self) -> u64 {
        self.told_books().await.pushed
    }

    async fn told_books(&self) -> Books {
        loop {
            if let Some(books) = self.books().await {
                return books;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until this many are done; the node must live on.
    async fn until_done(&self, count: u64) {
        let what = format!("{count} done");
        self.until(&what, async || self.done().await >= count).await;
    }

    async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !condition().await {
                assert!(!self.task.is_finished(), "the node ended: {:?}", self.told.0);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        assert!(waited.is_ok(), "not in time: {what}; {:?}; {:?}", self.books().await, self.told.0);
    }

    /// Stops the node; the books must balance.
    async fn stop(self) {
        self.shutdown.graceful();
        self.task.await.unwrap().unwrap();
        for queue in self.fleet.ask(Recount { max_hold_ms: 10_000 }).await.unwrap().queues {
            assert!(queue.balance(), "{queue:?}");
        }
    }
}

fn node(fleet: &Fleet, size: usize) -> Node {
    let node = fleet.node().source("numbers", Numbers { size }).max_queue_bytes(1 << 20);
    node.handler("messages", async |_: serde_json::Value, _| Ok(Done::default()))
}

fn order(server: &RedisServer, command: &str) -> String {
    let mut words = command.split(' ');
    let mut to = redis::cmd(words.next().unwrap());
    words.for_each(|word| {
        to.arg(word);
    });
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    to.query(&mut connection).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_primary_is_waited_for_until_it_leads_again() {
    let server = RedisServer::start(Persistence::None);
    let running = Running::start(&server.url(), 1);
    for round in 1..=3 {
        let before = running.done().await;
        running.until_done(before + 100).await;
        // Its primary-to-be does not exist, so it keeps what it has.
        order(&server, "REPLICAOF 127.0.0.1 1");
        running.until("it is told", async || running.told.away("read-only replica now") >= round).await;
        order(&server, "REPLICAOF NO ONE");
        running.until("its end is told", async || running.told.back() >= round).await;
        running.until_done(running.done().await + 100).await;
    }
    assert_eq!(running.told.joined(), 4, "once more after each: {:?}", running.told.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_evict_gets_nothing_new_until_it_is_mended() {
    // Also what a restart brings back.
    let mut server = RedisServer::start_with(Persistence::AofAlways, &["--maxmemory-policy", "allkeys-lru"]);
    order(&server, "CONFIG SET maxmemory-policy noeviction");
    let running = Running::start(&server.url(), 1);
    for round in 1..=2 {
        running.until_done(running.done().await + 100).await;
        order(&server, "CONFIG SET maxmemory-policy allkeys-lru");
        let may_evict = |event: &Event| matches!(event, Event::Store(StoreEvent::MayEvict { .. }));
        running.until("it is told", async || running.told.count(may_evict) >= round).await;
        // New connections find the server as it is, and so do new sessions after a restart.
        order(&server, "CLIENT KILL TYPE normal SKIPME yes");
        let rests = async || running.books().await.is_some_and(|books| books.ready + books.in_flight == 0);
        running.until("all is worked off", rests).await;
        let pushed = running.pushed().await;
        server.kill();
        server.restart();
        running.until("it has joined again", async || running.told.joined() > round).await;
        assert_eq!(running.pushed().await, pushed, "{:?}", running.told.0);
        order(&server, "CONFIG SET maxmemory-policy noeviction");
        let mended = |event: &Event| matches!(event, Event::Store(StoreEvent::EvictsNoMore { .. }));
        running.until("its end is told", async || running.told.count(mended) >= round).await;
        running.until_done(running.done().await + 100).await;
        assert_eq!([running.told.count(may_evict), running.told.count(mended)], [round, round], "{:?}", running.told.0);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_its_maxmemory_is_told_of_once() {
    let server = RedisServer::start(Persistence::None);
    let running = Running::start(&server.url(), 1);
    running.until_done(100).await;
    order(&server, "CONFIG SET maxmemory 1");
    let full = |event: &Event| matches!(event, Event::StoreFull { error } if error.to_string().contains("is at its maxmemory"));
    running.until("it is told", async || running.told.count(full) == 1).await;
    order(&server, "CONFIG SET maxmemory 0");
    running.until_done(running.done().await + 100).await;
    let takes = |event: &Event| matches!(event, Event::StoreTakes { .. });
    running.until("its end is told", async || running.told.count(takes) == 1).await;
    assert_eq!(running.told.count(full), 1, "{:?}", running.told.0);
    running.stop().await;
}

/// Also where it took the node without one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_a_password_now_is_waited_for_and_told_of() {
    let server = RedisServer::start(Persistence::None);
    let running = Running::start(&server.url(), 1);
    running.until_done(100).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut order = |command: &str| {
        let mut to = redis::Cmd::new();
        for word in command.split(' ') {
            to.arg(word);
        }
        to.exec(&mut connection).unwrap();
    };
    order("CONFIG SET requirepass secret");
    order("CLIENT KILL TYPE normal SKIPME yes");
    running.until("it is told", async || running.told.away("wants a password") == 1).await;
    order("ACL SETUSER default nopass");
    running.until("its end is told", async || running.told.back() == 1).await;
    running.until_done(running.done().await + 100).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_taken_away_from_a_node_is_named_and_waited_for() {
    let server = RedisServer::start(Persistence::None);
    order(&server, "ACL SETUSER limited on >secret ~* +@all");
    let running = Running::start(&server.url().replace("redis://", "redis://limited:secret@"), 1);
    running.until_done(100).await;
    order(&server, "ACL SETUSER limited -hset");
    running.until("it is told", async || running.told.away("`ACL SETUSER limited +hset`") == 1).await;
    order(&server, "ACL SETUSER limited +hset");
    running.until("its end is told", async || running.told.back() == 1).await;
    running.until_done(running.done().await + 100).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_leads_to_the_new_primary_is_followed() {
    let at_once = ["--repl-diskless-sync-delay", "0"];
    let (old, new) = (RedisServer::start_with(Persistence::None, &at_once), RedisServer::start(Persistence::None));
    order(&new, &format!("REPLICAOF 127.0.0.1 {}", old.port()));
    let proxy = Proxy::start(old.port(), b"nothing").await;
    let running = Running::start(&format!("redis://127.0.0.1:{}/0", proxy.port()), 1);
    running.until_done(100).await;
    let in_step = async || order(&new, "INFO replication").contains("master_link_status:up");
    running.until("the replica is in step", in_step).await;
    order(&old, &format!("REPLICAOF 127.0.0.1 {}", new.port()));
    order(&new, "REPLICAOF NO ONE");
    proxy.lead_to(new.port());
    running.until_done(running.done().await + 100).await;
    assert!(order(&new, "INFO replication").contains("role:master"));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushed_functions_cost_neither_the_baton_nor_the_session() {
    // Inline parcels, and such as are staged.
    for size in [1, 3_000] {
        let server = RedisServer::start(Persistence::None);
        let running = Running::start(&server.url(), size);
        running.until_done(100).await;
        for _ in 0..30 {
            order(&server, "FUNCTION FLUSH");
            running.until_done(running.done().await + 40).await;
        }
        // And as fast as the server can.
        let flushing = Arc::new(AtomicBool::new(true));
        let flusher = std::thread::spawn({
            let (flushing, url) = (flushing.clone(), server.url());
            move || {
                let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
                while flushing.load(Ordering::Relaxed) {
                    for command in ["FUNCTION", "SCRIPT"] {
                        redis::cmd(command).arg("FLUSH").arg("SYNC").exec(&mut connection).unwrap();
                    }
                }
            }
        });
        running.until_done(running.done().await + 400).await;
        flushing.store(false, Ordering::Relaxed);
        flusher.join().unwrap();
        assert_eq!(
            running.told.count(|event| matches!(event, Event::BatonTaken { .. })),
            1,
            "it keeps its baton: {:?}",
            running.told.0
        );
        assert_eq!(running.told.joined(), 1, "and its session: {:?}", running.told.0);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_told_once_when_it_begins_and_once_when_it_is_over() {
    let mut server = RedisServer::start(Persistence::AofEverySecond);
    let running = Running::start(&server.url(), 1);
    for round in 1..=2 {
        running.until_done(running.done().await + 100).await;
        server.kill();
        running.until("it is told", async || running.told.away("") >= round).await;
        server.restart();
        running.until("its end is told", async || running.told.back() >= round).await;
        running.until_done(running.done().await + 100).await;
        let told = [running.told.away(""), running.told.back()];
        assert_eq!(told, [round, round], "{:?}", running.told.0);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_write_to_its_disk_is_told_of() {
    let server = RedisServer::start_with(Persistence::None, &["--save", "3600 1"]);
    let running = Running::start(&server.url(), 1);
    running.until_done(100).await;
    // No dump can take the place of a folder.
    let dump = server.folder().join("dump.rdb");
    std::fs::create_dir_all(dump.join("in-the-way")).unwrap();
    let saves = |status: &'static str| {
        let server = &server;
        async move || {
            let info = order(server, "INFO persistence");
            if !info.contains("rdb_bgsave_in_progress:1") && !info.contains(status) {
                order(server, "BGSAVE");
            }
            info.contains(status)
        }
    };
    running.until("it cannot save", saves("rdb_last_bgsave_status:err")).await;
    let why = "cannot write to its disk, and takes nothing until it can";
    running.until("it is told", async || running.told.away(why) == 1).await;
    std::fs::remove_dir_all(&dump).unwrap();
    running.until("it can save", saves("rdb_last_bgsave_status:ok")).await;
    running.until("its end is told", async || running.told.back() == 1).await;
    running.until_done(running.done().await + 100).await;
    assert_eq!([running.told.away(""), running.told.back()], [1, 1], "{:?}", running.told.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_more_connections_is_quoted() {
    let server = RedisServer::start(Persistence::None);
    order(&server, "CONFIG SET maxclients 1");
    let client = redis::Client::open(server.url()).unwrap();
    let _the_one = client.get_connection().unwrap();
    let store = RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).unwrap();
    let refused = ask(&store, TakeSurvey).await.unwrap_err().to_string();
    assert!(refused.ends_with("takes no more connections: max number of clients reached"), "{refused}");
}

/// A server that stands still refuses nothing: only its silence tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_is_told_of() {
    let server = RedisServer::start(Persistence::None);
    let running = Running::start(&server.url(), 1);
    running.until_done(100).await;
    server.stand_still(true);
    running.until("it is told", async || running.told.away("has not answered") == 1).await;
    server.stand_still(false);
    running.until("its end is told", async || running.told.back() == 1).await;
    running.until_done(running.done().await + 100).await;
    running.stop().await;
}
