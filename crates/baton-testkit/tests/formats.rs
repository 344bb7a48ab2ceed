//! Stores written by every released format open, balance and give their messages.
//!
//! A fixture holds forty ticks run by a node, some of them dead and two of those drained, three messages waiting, and
//! ten under a bookmark in a paused queue.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{path::PathBuf, sync::Arc};

use baton::{
    DEFAULT_FLEET,
    message::{Key, Name},
    store::{
        Kind, Order, Peek, ReadBookmark, Recount, RedisOptions, RedisStore, SqliteOptions, SqliteStore, Store,
        TakeSurvey, ask,
        session::{Session, SessionOptions},
    },
};
use baton_testkit::server::RedisServer;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

async fn opens(store: Arc<dyn Store>) {
    let recounted = ask(&*store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(!recounted.queues.is_empty() && recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
    let survey = ask(&*store, TakeSurvey).await.unwrap();
    let source = survey.sources.first().unwrap();
    assert_eq!((source.cursor.as_str(), source.ended), ("40", true));
    let messages = survey.queues.iter().find(|books| books.queue == name("messages")).unwrap();
    assert_eq!((messages.pushed, messages.ready, messages.drained), (43, 3, 2));
    let bookmark = ask(&*store, ReadBookmark { key: Key::new("import").unwrap() }).await.unwrap();
    assert_eq!(bookmark.lines, 10);
    let peek = Peek { queue: name("messages"), after: 0, upto: 1 << 40, limit: 99, max_bytes: 1 << 20 };
    let errors = ask(&*store, peek).await.unwrap().errors;
    assert_eq!(errors.len() as u64, messages.dead);
    assert!(errors.iter().all(|error| error.error == "demo failure" && error.body.starts_with(b"{\"tick\":")));
    let options = SessionOptions { kind: Kind::Node, ..SessionOptions::client() };
    let session = Session::join(store.clone(), options).await.unwrap();
    ask(&*store, Order::Resume(name("other"))).await.unwrap();
    for (queue, bodies) in [("messages", &["{\"waiting\":1}", "\"two\"", "3"][..]), ("other", &["10", "11"][..])] {
        let Some(held) = session.claim(name(queue), bodies.len() as u32, 1 << 20).await.unwrap().held else {
            panic!("{queue} is empty")
        };
        let (_, _, pieces) = held.into_parts();
        let given: Vec<_> = pieces.iter().flat_map(|(_, parcel)| parcel.bodies().collect::<Vec<_>>()).collect();
        assert_eq!(given, bodies);
    }
    session.leave().await.unwrap();
}

/// A node of an older release was killed with eight of thirty messages: they come back with a loss.
async fn goes_on_after_a_kill(store: Arc<dyn Store>) {
    let survey = ask(&*store, TakeSurvey).await.unwrap();
    assert_eq!((survey.sessions.len(), survey.queues[0].in_flight), (1, 8), "looking changes nothing");
    let options = SessionOptions { kind: Kind::Node, ..SessionOptions::client() };
    let session = Session::join(store.clone(), options).await.unwrap();
    let reaped = async {
        while ask(&*store, TakeSurvey).await.unwrap().sessions.len() > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), reaped).await.unwrap();
    let held = session.claim(name("messages"), 99, 1 << 20).await.unwrap().held.unwrap();
    let (_, _, pieces) = held.into_parts();
    let lost: u32 = pieces.iter().filter(|(piece, _)| piece.losses == 1).map(|(piece, _)| piece.range.len).sum();
    assert_eq!((lost, pieces.iter().map(|(piece, _)| piece.range.len).sum::<u32>()), (8, 30));
    session.leave().await.unwrap();
    let recounted = ask(&*store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(|queue| queue.balance()), "{recounted:?}");
}

#[tokio::test]
async fn sqlite_format_1_of_a_node_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    std::fs::copy(fixture("format-1-killed.sqlite"), &file).unwrap();
    let options = SqliteOptions { create: false, ..SqliteOptions::default() };
    goes_on_after_a_kill(Arc::new(SqliteStore::open(&file, name(DEFAULT_FLEET), options).unwrap())).await;
}

#[tokio::test]
async fn redis_format_1_of_a_node_that_was_killed() {
    let server = RedisServer::start_from(&fixture("format-1-killed.rdb"));
    let store = RedisStore::open(&server.url(), name(DEFAULT_FLEET), RedisOptions::default()).unwrap();
    // While it beats, it is waited for.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let session = ask(&store, TakeSurvey).await.unwrap().sessions[0].session;
    let beat = |at: u128| {
        redis::cmd("HSET").arg(format!("{{baton/0}}:s:{session}")).arg("beat").arg(at.to_string()).to_owned()
    };
    beat(now + 60_000).query_async::<u64>(&mut connection).await.unwrap();
    let refused = Session::join(Arc::new(store.clone()), SessionOptions::client()).await.err().unwrap();
    assert!(refused.is_retryable() && refused.to_string().contains("older release"), "{refused}");
    beat(now - 60_000).query_async::<u64>(&mut connection).await.unwrap();
    goes_on_after_a_kill(Arc::new(store)).await;
}

#[tokio::test]
async fn sqlite_format_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    std::fs::copy(fixture("format-1.sqlite"), &file).unwrap();
    let options = SqliteOptions { create: false, ..SqliteOptions::default() };
    opens(Arc::new(SqliteStore::open(&file, name(DEFAULT_FLEET), options).unwrap())).await;
}

#[tokio::test]
async fn redis_format_1() {
    let server = RedisServer::start_from(&fixture("format-1.rdb"));
    let store = RedisStore::open(&server.url(), name(DEFAULT_FLEET), RedisOptions::default()).unwrap();
    opens(Arc::new(store)).await;
}
