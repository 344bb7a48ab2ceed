//! Another program's keys in the place of the fleet's: named, and nothing is written or removed.

use baton::{
    Key, SessionId,
    store::{message::*, *},
};

use crate::{RedisServer, behind, join, name, store, submit};

/// Keys that a fleet has once or for a queue, and something of another kind in their place.
const FOREIGN: [(&str, &str); 10] = [
    ("{fleet/0}", "SET {fleet/0} x"),
    ("{fleet/0}:hold", "SADD {fleet/0}:hold x"),
    ("{fleet/0}:sessions", "SET {fleet/0}:sessions x"),
    ("{fleet/0}:nodes", "SET {fleet/0}:nodes x"),
    ("{fleet/0}:queues", "RPUSH {fleet/0}:queues x"),
    ("{fleet/0}:marks", "SET {fleet/0}:marks x"),
    ("{fleet/0}:callends", "SET {fleet/0}:callends x"),
    ("{fleet/0}:k:q", "SADD {fleet/0}:k:q x"),
    ("{fleet/0}:q:q", "SET {fleet/0}:q:q x"),
    ("{fleet/0}:r:q", "SET {fleet/0}:r:q x"),
];

#[track_caller]
fn names<T: std::fmt::Debug>(refused: Result<T, StoreError>, key: &str) {
    let error = refused.unwrap_err();
    let told = format!("under {key}, where this fleet keeps a ");
    assert!(matches!(&error, StoreError::Unfit(why) if why.contains(&told)), "{key}: {error:?}");
}

fn keys(server: &RedisServer) -> Vec<String> {
    let mut keys: Vec<String> = behind(server, "KEYS *");
    keys.sort();
    keys
}

#[tokio::test]
async fn a_key_of_another_program_is_named_before_anything_is_written() {
    let server = RedisServer::start(&[]);
    for (key, set) in FOREIGN {
        let _: redis::Value = behind(&server, set);
        let store = store(&server);
        let (session, host, pid, queues) = (SessionId::random(), "here".to_owned(), 1, vec![name("q")]);
        let (kind, definition) = (Kind::Node, Digest::of(b"a source"));
        let offers = vec![Offer { source: name("s"), queue: name("q"), definition, adopts: false }];
        let joining =
            Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None };
        names(ask(&store, joining).await, key);
        names(ask(&store, Order::Pause(name("q"))).await, key);
        assert_eq!(keys(&server), [key]);
        let _: u64 = behind(&server, &format!("DEL {key}"));
    }
}

#[tokio::test]
async fn a_destruction_names_a_key_of_another_program_and_removes_nothing() {
    for (key, set) in FOREIGN.into_iter().skip(1) {
        let server = RedisServer::start(&[]);
        let store = store(&server);
        let client = join(&store, Kind::Client).await;
        ask(&store, submit(client, 1, &[b"1"])).await.unwrap();
        ask(&store, Leave { session: client }).await.unwrap();
        let _: u64 = behind(&server, &format!("DEL {key}"));
        let _: redis::Value = behind(&server, set);
        let before = keys(&server);
        names(ask(&store, Destroy).await, key);
        assert_eq!(keys(&server), before);
        let _: u64 = behind(&server, &format!("DEL {key}"));
        ask(&store, Destroy).await.unwrap();
        assert_eq!(keys(&server), [""; 0]);
    }
}

/// A submission for a new queue is judged before another one of the same submit is stored, and before its bookmark moves.
#[tokio::test]
async fn what_a_new_queue_would_run_into_is_named_before_a_submit_writes() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let client = join(&store, Kind::Client).await;
    let _: String = behind(&server, "SET {fleet/0}:r:new x");
    let mut submit = submit(client, 1, &[b"1"]);
    submit.submissions.push(Submission { queue: name("new"), ..submit.submissions[0].clone() });
    let (key, digest) = (Key::new("k").unwrap(), Digest::of(b"lines"));
    let after = Place { lines: 2, digest };
    submit.bookmark = Some(MoveBookmark { key, from: Place::START, to: after });
    let before = keys(&server);
    names(ask(&store, submit.clone()).await, "{fleet/0}:r:new");
    assert_eq!(keys(&server), before);
    let _: u64 = behind(&server, "DEL {fleet/0}:r:new");
    assert_eq!(ask(&store, submit).await.unwrap().submissions.len(), 2);
}
