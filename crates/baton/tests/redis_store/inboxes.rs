//! Short messages pushed singly lie in the inbox of their queue until the next call that writes takes them in.

use baton::{
    SessionId,
    store::{message::*, *},
};

use crate::{RedisServer, behind, books, claim, join, name, settle, store, submit};

fn in_inbox(server: &RedisServer) -> u64 {
    behind(server, "LLEN {fleet/0}:i:q")
}

async fn push(store: &RedisStore, session: SessionId, numbers: std::ops::RangeInclusive<u64>) {
    for no in numbers {
        let stored = ask(store, submit(session, no, &[no.to_string().as_bytes()])).await.unwrap().lots;
        assert!(matches!(stored[..], [LotVerdict::Stored { .. }]), "{stored:?}");
    }
}

fn is_balanced(recount: &Recounted) -> bool {
    recount.queues.iter().all(QueueRecount::balance)
}

#[tokio::test]
async fn every_reader_counts_what_lies_in_an_inbox() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=10).await;
    assert_eq!(in_inbox(&server), 9, "the first one opens it");
    let Books { pushed, ready, bytes, .. } = books(&store).await;
    assert_eq!((pushed, ready), (10, 10));
    assert_eq!(ask(&store, Look { session }).await.unwrap().queues.len(), 1);
    let paging = RedisOptions { recount_at_once: 1, ..RedisOptions::default() };
    let paging = RedisStore::open(&server.url(), name("fleet"), paging).unwrap();
    for store in [&store, &paging] {
        assert!(is_balanced(&ask(store, Recount { max_hold_ms: 10_000 }).await.unwrap()));
    }
    assert_eq!(in_inbox(&server), 9, "reading changes nothing");

    let pieces = ask(&store, claim(session, 1, 4)).await.unwrap().pieces;
    assert_eq!(pieces.iter().map(|(piece, _)| piece.range.first).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(in_inbox(&server), 6);
    let taken_in = books(&store).await;
    assert_eq!((taken_in.pushed, taken_in.ready, taken_in.bytes), (10, 6, bytes));
    push(&store, session, 11..=12).await;
    ask(&store, settle(session, 1, 1, 4, Outcome::DONE)).await.unwrap();
    assert_eq!(in_inbox(&server), 8, "a report leaves it");
    assert!(is_balanced(&ask(&store, Recount { max_hold_ms: 1 }).await.unwrap()));
    let rest = ask(&store, claim(session, 2, 100)).await.unwrap().pieces;
    assert_eq!(rest.iter().map(|(piece, _)| piece.range.first).collect::<Vec<_>>(), (5..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_inbox_is_bounded_and_keeps_the_order() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=300).await;
    assert!(in_inbox(&server) <= 128);
    // What comes another way goes behind it.
    let several = ask(&store, submit(session, 301, &[b"301", b"302"])).await.unwrap().lots;
    assert_eq!(several, [LotVerdict::Stored { first: 301 }]);
    push(&store, session, 302..=310).await;
    let (mut ids, mut bodies) = (Vec::new(), Vec::new());
    for (claim_no, n) in [(1, 1), (2, 50), (3, 100), (4, 1_000)] {
        assert!(is_balanced(&ask(&store, Recount { max_hold_ms: 1 }).await.unwrap()));
        for (piece, parcel) in ask(&store, claim(session, claim_no, n)).await.unwrap().pieces {
            ids.extend(piece.range.first..piece.range.first + u64::from(piece.range.len));
            bodies.extend(parcel.bodies());
        }
    }
    assert_eq!(ids, (1..=311).collect::<Vec<_>>());
    let whole: Vec<_> = (1..=302).chain(302..=310).map(|n: u64| n.to_string()).collect();
    assert_eq!(bodies, whole);
    assert_eq!(books(&store).await.ready, 0);
}

#[tokio::test]
async fn a_queue_near_its_bound_is_counted_exactly() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=50).await;
    let (held, inbox) = (books(&store).await.bytes, in_inbox(&server));
    assert_eq!(inbox, 49);
    let next = |submit_no, max_backlog| Submit { max_backlog, ..submit(session, submit_no, &[b"51"]) };
    let full = ask(&store, next(51, held)).await.unwrap().lots;
    assert_eq!(full, [LotVerdict::Full]);
    let stored = ask(&store, next(52, held + 100)).await.unwrap().lots;
    assert_eq!(stored, [LotVerdict::Stored { first: 51 }]);
}

#[tokio::test]
async fn a_repeated_push_into_an_inbox_is_answered_the_same() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=5).await;
    for no in [5, 4] {
        let again = ask(&store, submit(session, no, &[b"again"])).await.unwrap().lots;
        assert_eq!(again, [LotVerdict::Stored { first: no }]);
    }
    let early = ask(&store, submit(session, 7, &[b"7"])).await.unwrap_err();
    assert_eq!(early, StoreError::Refused(Refusal::OutOfTurn { last: 5 }));
    let stranger = ask(&store, submit(SessionId::random(), 1, &[b"1"])).await.unwrap_err();
    assert_eq!(stranger, StoreError::Refused(Refusal::Stale));
    assert_eq!(books(&store).await.pushed, 5);
}
