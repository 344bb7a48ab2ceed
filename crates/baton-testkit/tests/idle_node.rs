//! What a node costs a Redis server while there is nothing to do.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{sync::Arc, time::Duration};

use baton::{
    Done, Fleet, FleetOptions, Node, Shutdown,
    store::{RedisOptions, RedisStore},
};
use baton_testkit::{
    server::{Persistence, RedisServer},
    subject::test_fleet,
};
use redis::aio::MultiplexedConnection;

const QUEUES: usize = 200;

async fn info(connection: &mut MultiplexedConnection, section: &str, field: &str) -> u64 {
    let text: String = redis::cmd("INFO").arg(section).query_async(connection).await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    value.trim().parse().unwrap()
}

/// Calls, waiting, beats: whatever its queues are, and whatever the runtime it was started from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_has_three_connections() {
    let server = RedisServer::start(Persistence::None);
    let client = redis::Client::open(server.url()).unwrap();
    let mut watching = client.get_multiplexed_async_connection().await.unwrap();
    let store = RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).unwrap();
    let fleet = Fleet::over(Arc::new(store), FleetOptions::new(test_fleet()));
    let queue = |node: Node, nth: usize| node.handler(&format!("q{nth}"), async |_: u64, _| Ok(Done::default()));
    let shutdown = Shutdown::new();
    let node = tokio::spawn((0..QUEUES).fold(fleet.node(), queue).run(shutdown.clone()));
    let waiting = async {
        while info(&mut watching, "clients", "blocked_clients").await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "it never waits");
    // One is the connection that asks.
    assert!(info(&mut watching, "clients", "connected_clients").await <= 1 + 3);
    shutdown.graceful();
    node.await.unwrap().unwrap();
}
