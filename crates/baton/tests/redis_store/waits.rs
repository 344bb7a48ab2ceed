//! Claims that wait: woken by a push, ended on time, and no token swallowed.

use std::time::{Duration, Instant};

use baton::store::*;

use crate::{behind, claim, join, name, redis_server::RedisServer, store, submit};

#[tokio::test]
async fn a_wait_ends_with_a_push_and_one_that_is_over_swallows_nothing() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let second = Duration::from_secs(1);
    // Waits that are dropped while the server has them.
    for _ in 0..10 {
        let dropped = store.claim_when_ready(claim(session, 1, 1), second);
        tokio::time::timeout(Duration::from_millis(20), dropped).await.unwrap_err();
    }
    while !behind::<String>(&server, "INFO clients").contains("blocked_clients:0") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let waiting = tokio::spawn({
        let (store, queues) = (store.clone(), vec![name("other"), name("q")]);
        async move { store.claim_when_ready(Claim { queues, ..claim(session, 1, 1) }, second).await }
    });
    while behind::<String>(&server, "INFO clients").contains("blocked_clients:0") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let since = Instant::now();
    ask(&store, submit(session, 1, &[b"1", b"2"])).await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Answer::Claim(Claimed::Some { .. }))));
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
    // A claim that leaves messages behind wakes the next.
    let since = Instant::now();
    let next = store.claim_when_ready(claim(session, 2, 1), second).await;
    assert!(matches!(next, Ok(Answer::Claim(Claimed::Some { .. }))), "{next:?}");
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
    // A session that is gone leaves the token to others.
    let gone = join(&store, Kind::Node).await;
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.claim_when_ready(claim(gone, 1, 1), second).await }
    });
    while behind::<String>(&server, "INFO clients").contains("blocked_clients:0") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    ask(&store, Leave { session: gone }).await.unwrap();
    ask(&store, submit(session, 2, &[b"3"])).await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(StoreError::Refused(Refusal::Stale)));
    let since = Instant::now();
    let next = store.apart().claim_when_ready(claim(session, 3, 1), second).await;
    assert!(matches!(next, Ok(Answer::Claim(Claimed::Some { .. }))), "{next:?}");
    assert!(since.elapsed() < Duration::from_millis(500), "{:?}", since.elapsed());
    // A wait in vain lasts as long as was asked for, though the server looks at the time only now and then.
    let since = Instant::now();
    let none = Claim { queues: vec![name("none")], ..claim(session, 4, 1) };
    let none = store.claim_when_ready(none, Duration::from_millis(30)).await;
    assert_eq!(none, Ok(Answer::Claim(Claimed::Empty { next_due_ms: None })));
    assert!((30..90).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    // Of all keys only those of wake-ups expire.
    ask(&store, submit(session, 3, &[b"4"])).await.unwrap();
    for key in behind::<Vec<String>>(&server, "KEYS *") {
        let ttl: i64 = behind(&server, &format!("PTTL {key}"));
        assert_eq!(ttl > 0, key.contains(":w:"), "{key} {ttl}");
    }
}
