//! Handlers that block every thread of their runtime: for a while it costs nothing, for ever it costs the session.
//! Functions that may block have threads of their own, and cost it however long never. What a blocked runtime was given
//! and has not read runs elsewhere.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use baton::{
    Context, Done, Fleet, FleetOptions, Name, Node, Shutdown,
    store::{Clock, MemoryStore, Store, Survey, TakeSurvey, ask},
};
use baton_testkit::{
    server::{Persistence, RedisServer},
    subject::test_fleet,
};

/// Runs a node on a runtime of its own with one thread.
fn on_its_own(node: impl FnOnce() -> Node + Send + 'static, shutdown: Shutdown) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { node().run(shutdown).await.unwrap() });
    })
}

fn survey(store: &Arc<dyn Store>) -> Survey {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ask(&*store.apart(), TakeSurvey)).unwrap()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A store with one message, and a fleet over it.
fn setting() -> (Arc<dyn Store>, Fleet) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::system()));
    let fleet = Fleet::over(store.clone(), FleetOptions::new(test_fleet()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        fleet.queue::<str>("messages").push("spin").await.unwrap();
        fleet.leave().await.unwrap();
    });
    (store, fleet)
}

/// A node whose handler spins while `spinning` stands, and one that would take over.
fn blocked_and_other(fleet: &Fleet, spinning: &Arc<AtomicBool>, elsewhere: &Arc<AtomicU64>) -> [Shutdown; 2] {
    let cancels = [Shutdown::new(), Shutdown::new()];
    let (of_blocked, flag, begun) = (fleet.clone(), spinning.clone(), Arc::new(AtomicBool::new(false)));
    let told = begun.clone();
    let node = move || {
        of_blocked.node().handler("messages", move |_: String, _: Context| {
            told.store(true, SeqCst);
            while flag.load(SeqCst) {
                std::hint::spin_loop();
            }
            std::future::ready(Ok(Done::default()))
        })
    };
    on_its_own(node, cancels[0].clone());
    until("the handler spins", || begun.load(SeqCst));
    let (of_other, count) = (fleet.clone(), elsewhere.clone());
    let node = move || {
        of_other.node().handler("messages", move |_: String, _: Context| {
            count.fetch_add(1, SeqCst);
            std::future::ready(Ok(Done::default()))
        })
    };
    on_its_own(node, cancels[1].clone());
    cancels
}

#[test]
fn a_runtime_blocked_for_three_seconds_keeps_its_lease() {
    let (store, fleet) = setting();
    let (spinning, elsewhere) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let cancels = blocked_and_other(&fleet, &spinning, &elsewhere);
    until("both have joined", || survey(&store).sessions.len() == 2);
    // The time itself is what is tested here: three leases.
    let end = Instant::now() + Duration::from_secs(3);
    until("three seconds have passed", || {
        assert_eq!(survey(&store).sessions.len(), 2, "the lease was lost");
        Instant::now() > end
    });
    spinning.store(false, SeqCst);
    until("it is done", || survey(&store).queues[0].done == 1);
    assert_eq!(elsewhere.load(SeqCst), 0, "it ran where it was");
    cancels.iter().for_each(Shutdown::graceful);
}

#[test]
fn a_runtime_blocked_for_ever_loses_its_lease_and_the_message_runs_elsewhere() {
    let (store, fleet) = setting();
    let (spinning, elsewhere) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let cancels = blocked_and_other(&fleet, &spinning, &elsewhere);
    until("it runs elsewhere", || elsewhere.load(SeqCst) == 1);
    until("it is done", || survey(&store).queues[0].done == 1);
    spinning.store(false, SeqCst);
    cancels.iter().for_each(Shutdown::graceful);
    let books = &survey(&store).queues[0];
    assert_eq!((books.done, books.queue.clone()), (1, Name::new("messages").unwrap()), "once, whoever reports last");
}

#[test]
fn a_function_that_may_block_keeps_the_lease_for_longer_than_a_runtime_may_stand_still() {
    let (store, fleet) = setting();
    let (released, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (flag, count, shutdown) = (released.clone(), begun.clone(), Shutdown::new());
    let node = move || {
        fleet.node().handler_blocking("messages", move |_: String, _: Context| {
            count.fetch_add(1, SeqCst);
            until("it is released", || flag.load(SeqCst));
            Ok(Done::default())
        })
    };
    let node = on_its_own(node, shutdown.clone());
    until("the function runs", || begun.load(SeqCst) == 1);
    let session = survey(&store).sessions[0].session;
    // The time itself is what is tested here: more than the five seconds after which beats would stop.
    let end = Instant::now() + Duration::from_secs(7);
    until("seven seconds have passed", || {
        let sessions = survey(&store).sessions;
        assert_eq!(sessions.iter().map(|view| view.session).collect::<Vec<_>>(), [session], "the lease was lost");
        Instant::now() > end
    });
    released.store(true, SeqCst);
    until("it is done", || survey(&store).queues[0].done == 1);
    assert_eq!(begun.load(SeqCst), 1, "it ran once");
    shutdown.graceful();
    node.join().unwrap();
}

/// A node that counts what it runs.
fn counting(fleet: &Fleet, count: &Arc<AtomicU64>) -> impl FnOnce() -> Node + Send + 'static {
    let (fleet, count) = (fleet.clone(), count.clone());
    move || {
        fleet.node().handler("messages", move |_: String, _: Context| {
            count.fetch_add(1, SeqCst);
            std::future::ready(Ok(Done::default()))
        })
    }
}

#[test]
fn what_the_server_has_given_to_a_runtime_that_reads_nothing_runs_elsewhere() {
    let server = RedisServer::start(Persistence::None);
    let fleet = Fleet::connect(&server.url()).unwrap();
    let store = fleet.store().clone();
    let mut client = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let mut waiting = || {
        let info: String = redis::cmd("INFO").arg("clients").query(&mut client).unwrap();
        info.lines().find_map(|line| line.strip_prefix("blocked_clients:")).unwrap().trim().parse::<u32>().unwrap()
    };
    let (here, elsewhere) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (blocked, released) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let cancels = [Shutdown::new(), Shutdown::new()];
    let (node, shutdown, blocks, until_released) =
        (counting(&fleet, &here), cancels[0].clone(), blocked.clone(), released.clone());
    let first = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(async move {
                while !blocks.load(SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                until("it is released", || until_released.load(SeqCst));
            });
            node().run(shutdown).await.unwrap();
        });
    });
    until("the first waits", || waiting() == 1);
    blocked.store(true, SeqCst);
    let second = on_its_own(counting(&fleet, &elsewhere), cancels[1].clone());
    until("both wait", || waiting() == 2);
    let push = fleet.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        push.queue::<str>("messages").push("given to the first").await.unwrap();
        push.leave().await.unwrap();
    });
    until("it runs elsewhere", || elsewhere.load(SeqCst) == 1);
    assert_eq!(survey(&store).sessions.len(), 2, "the first has not been given up");
    released.store(true, SeqCst);
    until("it is done", || survey(&store).queues[0].done == 1);
    cancels.iter().for_each(Shutdown::graceful);
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!((here.load(SeqCst), survey(&store).queues[0].stale_settles), (0, 0), "nobody else took it for theirs");
}
