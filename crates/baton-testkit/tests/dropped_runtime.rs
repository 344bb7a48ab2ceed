//! A runtime that goes while its node is at work, and functions that block more threads than a runtime has.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use baton::{
    Context, Done, Fleet, FleetOptions, Node, QueuePolicy, Shutdown,
    admin::{Admin, Wanted},
    store::{Books, Clock, MemoryStore, Recount, TakeSurvey},
};
use baton_testkit::subject::test_fleet;
use tokio::runtime::{Builder, Runtime};

const MESSAGES: u64 = 20_000;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn fleet() -> Fleet {
    Fleet::over(Arc::new(MemoryStore::new(Clock::system())), FleetOptions::new(test_fleet()))
}

fn node(fleet: &Fleet, concurrency: usize) -> Node {
    fleet.node().policy(QueuePolicy { concurrency, ..QueuePolicy::default() })
}

async fn books(fleet: &Fleet) -> Books {
    fleet.ask(TakeSurvey).await.unwrap().queues.into_iter().find(|books| books.queue.as_str() == "q").unwrap()
}

/// Runs nodes in runtimes that are dropped in the midst, then one to the end: nothing has failed.
fn no_message_is_blamed(handled: impl Fn(Node) -> Node) {
    let fleet = fleet();
    let outer = runtime();
    outer.block_on(async { fleet.queue::<u64>("q").push_all(0..MESSAGES).await.unwrap() });
    for round in 1..=5 {
        let inner = runtime();
        inner.spawn(handled(node(&fleet, 64)).run(Shutdown::new()));
        outer.block_on(async {
            while books(&fleet).await.done < round * 200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        drop(inner);
    }
    outer.block_on(async {
        let shutdown = Shutdown::new();
        let last = tokio::spawn(handled(node(&fleet, 64)).run(shutdown.clone()));
        let done = async {
            while books(&fleet).await.done + books(&fleet).await.failed < MESSAGES {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), done).await.unwrap();
        shutdown.graceful();
        last.await.unwrap().unwrap();
        // A message that four of the sessions died with is an error; what a runtime broke off is no failure of it.
        let errors = Admin::new(&fleet).errors(&Wanted::default()).await.unwrap();
        println!("{} messages were lost four times", errors.len());
        let blamed: Vec<_> = errors.iter().filter(|error| error.attempts > 0).collect();
        assert!(blamed.is_empty(), "{blamed:?}");
        assert!(fleet.ask(Recount { max_hold_ms: 1_000 }).await.unwrap().queues.iter().all(|queue| queue.balance()));
    });
}

#[test]
fn a_runtime_that_goes_blames_no_message_of_a_function_that_may_block() {
    no_message_is_blamed(|node| node.handler_blocking("q", |_: u64, _: Context| Ok(Done::default())));
}

#[test]
fn a_runtime_that_goes_blames_no_message_of_a_handler_that_uses_it() {
    no_message_is_blamed(|node| {
        node.handler("q", async |_: u64, _: Context| {
            tokio::task::spawn_blocking(|| ()).await?;
            tokio::spawn(async {}).await?;
            Ok(Done::default())
        })
    });
}

/// More of them than the threads a runtime has for what blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_block_keep_no_other_queue_waiting() {
    let fleet = fleet();
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let blocks = {
        let gate = gate.clone();
        move |_: u64, _: Context| {
            let opened = gate.1.wait_timeout_while(gate.0.lock().unwrap(), Duration::from_secs(60), |open| !*open);
            assert!(!opened.unwrap().1.timed_out(), "the gate was never opened");
            Ok(Done::default())
        }
    };
    fleet.queue::<u64>("slow").push_all(0..700_u64).await.unwrap();
    let shutdown = Shutdown::new();
    let node = node(&fleet, 700).handler_blocking("slow", blocks);
    let node = node.handler_blocking("q", |_: u64, _: Context| Ok(Done::default()));
    let running = tokio::spawn(node.run(shutdown.clone()));
    let in_flight = async |queue: &str| {
        let survey = fleet.ask(TakeSurvey).await.unwrap();
        survey.queues.into_iter().find(|books| books.queue.as_str() == queue).map_or(0, |books| books.in_flight)
    };
    while in_flight("slow").await < 700 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fleet.queue::<u64>("q").push(&1).await.unwrap();
    let done = async {
        while books(&fleet).await.done < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let begun = tokio::time::timeout(Duration::from_secs(20), done).await;
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert!(begun.is_ok(), "it waited for a thread of the others");
    shutdown.graceful();
    running.await.unwrap().unwrap();
}
