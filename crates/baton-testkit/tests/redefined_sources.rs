//! Sources whose definition changes from one start to the next, on every store.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::{sync::Arc, time::Duration};

use baton::{
    Done, Fleet, FleetOptions, Name, Node, NodeError, Shutdown,
    builtin::{CatchUp, Cron, Lines, Tick},
    store::{
        Clock, MemoryStore, RedisOptions, RedisStore, Refusal, Remove, SourceView, SqliteStore, Store, StoreError,
        TakeSurvey,
    },
};
use baton_testkit::{
    server::{Persistence, RedisServer},
    subject::test_fleet,
};

/// Runs a scenario on each store.
macro_rules! on_every_store {
    ($($scenario:ident)*) => {
        mod memory {
            $(#[tokio::test] async fn $scenario() {
                super::$scenario(super::fleet(super::Arc::new(super::MemoryStore::new(super::Clock::system())))).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $scenario() {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("store.db");
                let store = super::SqliteStore::open(&file, super::test_fleet(), Default::default()).unwrap();
                super::$scenario(super::fleet(super::Arc::new(store))).await;
            })*
        }
        mod redis {
            $(#[tokio::test] async fn $scenario() {
                let server = super::RedisServer::start(super::Persistence::None);
                let options = super::RedisOptions::default();
                let store = super::RedisStore::open(&server.url(), super::test_fleet(), options).unwrap();
                super::$scenario(super::fleet(super::Arc::new(store))).await;
            })*
        }
    };
}

on_every_store! {
    a_new_expression_is_adopted_after_a_stop_and_after_a_kill
    what_is_offered_by_a_live_node_is_not_redefined
    a_source_whose_cursor_would_mean_something_else_is_refused
}

fn fleet(store: Arc<dyn Store>) -> Fleet {
    Fleet::over(store, FleetOptions::new(test_fleet()))
}

fn working(node: Node) -> Node {
    node.handler("messages", async |_: serde_json::Value, _| Ok(Done::default()))
}

fn every_second(expression: &str) -> Cron {
    Cron::new(expression, CatchUp::Skip).unwrap()
}

async fn source(fleet: &Fleet) -> Option<SourceView> {
    fleet.ask(TakeSurvey).await.unwrap().sources.pop()
}

/// Waits until the source has a holder other than this one, and gives it.
async fn running(fleet: &Fleet, but: Option<&SourceView>) -> SourceView {
    let waiting = async {
        loop {
            let now = source(fleet).await;
            if let Some(now) = now.filter(|now| now.holder.is_some() && now.holder != but.and_then(|but| but.holder)) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the source is run")
}

/// How a node ends that is refused.
async fn refusal(node: Node) -> Refusal {
    match tokio::time::timeout(Duration::from_secs(30), node.run(Shutdown::new())).await.expect("it is refused") {
        Err(NodeError::Store(StoreError::Refused(refusal))) => refusal,
        other => panic!("{other:?}"),
    }
}

async fn a_new_expression_is_adopted_after_a_stop_and_after_a_kill(fleet: Fleet) {
    let first = Shutdown::new();
    let node = tokio::spawn(working(fleet.node().source("ticks", every_second("* * * * * *"))).run(first.clone()));
    let before = running(&fleet, None).await;
    first.graceful();
    node.await.unwrap().unwrap();

    let second = working(fleet.node().source_into("elsewhere", "ticks", every_second("*/2 * * * * *")));
    let killed = tokio::spawn(second.run(Shutdown::new()));
    let after_stop = running(&fleet, Some(&before)).await;
    assert_eq!(after_stop.queue.as_str(), "elsewhere");
    assert!(after_stop.epoch > before.epoch);
    killed.abort();
    assert!(killed.await.unwrap_err().is_cancelled());

    let third = Shutdown::new();
    let node = tokio::spawn(working(fleet.node().source("ticks", every_second("*/3 * * * * *"))).run(third.clone()));
    let after_kill = running(&fleet, Some(&after_stop)).await;
    assert_eq!(after_kill.queue.as_str(), "messages");
    assert!(!after_kill.cursor.is_empty(), "it goes on where it stood");
    third.graceful();
    node.await.unwrap().unwrap();
}

async fn what_is_offered_by_a_live_node_is_not_redefined(fleet: Fleet) {
    let shutdown = Shutdown::new();
    let live = tokio::spawn(working(fleet.node().source("ticks", Tick::default())).run(shutdown.clone()));
    let held = running(&fleet, None).await;
    let other = working(fleet.node().source_into("elsewhere", "ticks", Tick::default()));
    let session = held.holder.unwrap();
    let name = Name::new("ticks").unwrap();
    assert_eq!(refusal(other).await, Refusal::DefinitionInUse { source_name: name.clone(), session });
    let removed = fleet.ask(Remove { source: name.clone() }).await.unwrap_err();
    assert_eq!(removed, Refusal::Offered { source_name: name.clone(), session }.into());
    shutdown.graceful();
    live.await.unwrap().unwrap();
    fleet.ask(Remove { source: name }).await.unwrap();
    assert_eq!(source(&fleet).await, None);
}

async fn a_source_whose_cursor_would_mean_something_else_is_refused(fleet: Fleet) {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    std::fs::write(&one, "1\n2\n").unwrap();
    std::fs::write(&other, "3\n4\n").unwrap();
    let shutdown = Shutdown::new();
    let node = tokio::spawn(working(fleet.node().source("input", Lines::file(&one))).run(shutdown.clone()));
    let ended = async {
        while !source(&fleet).await.is_some_and(|source| source.ended) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    shutdown.graceful();
    node.await.unwrap().unwrap();
    let refused = refusal(working(fleet.node().source("input", Lines::file(&other)))).await;
    assert_eq!(refused, Refusal::Definition { source_name: Name::new("input").unwrap() });
}
