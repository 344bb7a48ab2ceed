//! What a session held goes back in transactions of bounded work, with calls of others between them.

use baton::{
    SessionId,
    store::{message::*, *},
};
use bytes::Bytes;

use crate::{join, name, open};

/// As many transactions as anybody needs to come between two of them.
const HELD: u64 = 40_000;

async fn holding(store: &SqliteStore) -> SessionId {
    let holder = SessionId::random();
    ask(store, Join { kind: Kind::Node, lease_ms: 1_000, heartbeat_ms: 100, ..join(holder) }).await.unwrap();
    let one = |n: u64| Submission {
        queue: name("q"),
        parcel: Parcel::single(Body::new(n.to_string().as_bytes()).unwrap()),
        key: None,
        call: None,
    };
    for (submit_no, first) in (1..).zip((1..=HELD).step_by(1_000)) {
        let submissions = (first..first + 1_000).map(one).collect();
        let submit =
            Submit { session: holder, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 };
        ask(store, submit).await.unwrap();
    }
    let mut held = 0;
    for claim_no in 1.. {
        let claim = Claim { session: holder, queue: name("q"), claim_no, n: 1_000, max_bytes: 1 << 24 };
        held += ask(store, claim).await.unwrap().spans.iter().map(|(span, _)| u64::from(span.range.len)).sum::<u64>();
        if held == HELD {
            return holder;
        }
    }
    holder
}

/// Everything is ready, in order, with this number of crashes.
async fn is_back(store: &SqliteStore, session: SessionId, crashes: u32) {
    let recounted = ask(store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues[0].balance(), "{recounted:?}");
    assert_eq!((recounted.queues[0].books.ready, recounted.queues[0].books.in_flight), (HELD, 0));
    let claim = Claim { session, queue: name("q"), claim_no: 1, n: 3, max_bytes: 1 << 24 };
    let spans = ask(store, claim).await.unwrap().spans;
    let seen: Vec<_> = spans.iter().map(|(span, _)| (span.range.first, span.crashes)).collect();
    assert_eq!(seen, [(1, crashes), (2, crashes), (3, crashes)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_one_that_held_much_leaves_and_beats_tell_of_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db"), "f", true);
    let (holder, other) = (holding(&store).await, SessionId::random());
    ask(&store, join(other)).await.unwrap();
    let leaving = tokio::spawn({
        let store = store.clone();
        async move { ask(&store, Leave { session: holder }).await }
    });
    let mut told = false;
    while !told && !leaving.is_finished() {
        let beat = ask(&store, Beat { session: other, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
        told = beat.expired == [holder];
        if told {
            // What is in flight is in the books, and the session is none any more.
            let recounted = ask(&store, Recount { max_hold_ms: 1_000 }).await.unwrap();
            assert!(recounted.queues[0].balance(), "{recounted:?}");
            assert!(ask(&store, TakeSurvey).await.unwrap().sessions.iter().all(|it| it.session != holder));
        }
    }
    assert!(told, "no call came between");
    leaving.await.unwrap().unwrap();
    let beat = ask(&store, Beat { session: other, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
    assert_eq!(beat.expired, []);
    is_back(&store, other, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_reaped_with_much_in_hand_loses_all_of_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db"), "f", true);
    let (holder, other) = (holding(&store).await, SessionId::random());
    ask(&store, join(other)).await.unwrap();
    let reap = Reap { session: other, target: holder };
    let reaped = loop {
        ask(&store, Beat { session: other, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
        match ask(&store, reap.clone()).await.unwrap() {
            Reaped::Alive => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            reaped => break reaped,
        }
    };
    assert_eq!(reaped.counts(), Some((HELD, 0)));
    assert_eq!(ask(&store, reap).await.unwrap(), Reaped::Gone);
    is_back(&store, other, 1).await;
}
