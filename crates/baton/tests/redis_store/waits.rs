//! Waits: ended by a push, and no wake-up swallowed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use baton::store::*;

use crate::{behind, claim, join, name, redis_server::RedisServer, store, submit};

fn blocked(server: &RedisServer) -> bool {
    !behind::<String>(server, "INFO clients").contains("blocked_clients:0")
}

#[tokio::test]
async fn a_wait_ends_with_a_push_and_one_that_is_over_swallows_nothing() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    assert_eq!(ask(&store, claim(session, 1, 1)).await.unwrap().spans, []);
    // Waits that are dropped while the server has them.
    for _ in 0..10 {
        let dropped = store.wait(session, Arc::new(vec![claim(session, 1, 1)]));
        tokio::time::timeout(Duration::from_millis(20), dropped).await.unwrap_err();
    }
    while blocked(&server) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait(session, Arc::new(vec![claim(session, 1, 1)])).await }
    });
    while !blocked(&server) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let since = Instant::now();
    ask(&store, submit(session, 1, &[b"1", b"2"])).await.unwrap();
    let woken = waiting.await.unwrap().unwrap();
    assert_eq!((woken.queues, woken.claimed[0].1.spans.len()), (vec![], 1));
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
    // A script that the server forgot while it waited is loaded anew, and what was read is not lost.
    assert_eq!(ask(&store, claim(session, 2, 9)).await.unwrap().spans.len(), 1);
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wait(session, Arc::new(vec![claim(session, 3, 1)])).await }
    });
    while !blocked(&server) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let _: String = behind(&server, "FUNCTION FLUSH");
    ask(&store, submit(session, 2, &[b"3"])).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().claimed[0].1.spans.len(), 1);
    // A session that is gone leaves its wake-up to others.
    let gone = join(&store, Kind::Node).await;
    assert_eq!(ask(&store, claim(gone, 1, 1)).await.unwrap().spans, []);
    assert_eq!(ask(&store, claim(session, 4, 9)).await.unwrap().spans, []);
    ask(&store, submit(session, 3, &[b"4"])).await.unwrap();
    ask(&store, Leave { session: gone }).await.unwrap();
    let since = Instant::now();
    assert_eq!(store.wait(session, Arc::<Vec<Claim>>::default()).await.unwrap().queues, [name("q")]);
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
    // No key expires by itself, and nothing is left of a session that is gone.
    for key in behind::<Vec<String>>(&server, "KEYS *") {
        let ttl: i64 = behind(&server, &format!("PTTL {key}"));
        assert!(ttl < 0, "{key} {ttl}");
        assert!(!key.contains(&gone.to_string()), "{key}");
    }
}
