//! A recount of much data holds the messages still, and whoever dies with a hold holds nobody for long.

use baton::store::{message::*, *};
use bytes::Bytes;

use crate::{RedisServer, behind, claim, join, monitor::Monitor, name, set_count, settle, store, submit};

/// What a recount in pages leaves that is stopped midway.
fn hold(server: &RedisServer, from: u64, until: u64) {
    redis::cmd("SET")
        .arg("{fleet/0}:hold")
        .arg(format!("{from} {until} another"))
        .exec(&mut server.connection())
        .unwrap();
    set_count(server, 3, 1.0);
}

#[tokio::test]
async fn a_hold_stops_messages_and_not_beats() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1", b"2", b"3"])).await.unwrap();
    ask(&store, claim(session, 1, 1)).await.unwrap();
    hold(&server, 0, 99_999_999_999_999);
    let requests = [
        submit(session, 2, &[b"4"]).request(),
        claim(session, 2, 1).request(),
        settle(session, 1, 1, 1, Outcome::DONE).request(),
        Leave { session }.request(),
        Reap { session, target: session }.request(),
        Dispose { session, dispose_no: 1, queue: name("q"), ids: vec![], disposal: Disposal::Remove }.request(),
    ];
    for request in requests {
        let answer = store.call(request.clone()).await;
        assert!(matches!(answer, Err(StoreError::Refused(Refusal::Held { .. }))), "{request:?}: {answer:?}");
    }
    assert_eq!(
        ask(&store, Beat { session, report: Bytes::new(), asks: Vec::new() }).await.unwrap().claims,
        [(name("q"), 1)]
    );
    let paging = RedisOptions { recount_at_once: 1, ..RedisOptions::default() };
    let paging = RedisStore::open(&server.url(), name("fleet"), paging).unwrap();
    let held = ask(&paging, Recount { max_hold_ms: 1000 }).await.unwrap_err();
    assert!(matches!(held, StoreError::Refused(Refusal::Held { .. })), "{held:?}");

    let _: u64 = behind(&server, "DEL {fleet/0}:hold");
    let given_up = ask(&paging, Recount { max_hold_ms: 0 }).await.unwrap_err();
    assert!(given_up.to_string().contains("given up after holding the store for 0 ms"), "{given_up}");
    let recounted = ask(&paging, Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(QueueRecount::balance));
    ask(&store, settle(session, 1, 1, 1, Outcome::DONE)).await.unwrap();
}

#[tokio::test]
async fn a_hold_is_over_when_the_clock_is_set_back() {
    let server = RedisServer::start(&[]);
    let options = RedisOptions { test_clock: true, recount_at_once: 1 };
    let store = RedisStore::open(&server.url(), name("fleet"), options).unwrap();
    let set_clock = |ms: u64| behind::<String>(&server, &format!("SET {} {ms}", store.test_clock_key()));
    let began = 1_700_000_000_000;
    set_clock(began);
    let session = join(&store, Kind::Node).await;
    // Of a recounting process that died.
    hold(&server, began, began + 1_000);
    let refused = ask(&store, submit(session, 1, &[b"1"])).await.unwrap_err();
    assert_eq!(refused, Refusal::Held { ms: 1_000 }.into());
    set_clock(began - 3_600_000);
    ask(&store, submit(session, 1, &[b"1"])).await.unwrap();
    ask(&store, submit(session, 2, &[b"2"])).await.unwrap();
    // This one takes a hold of its own, and with its end the old one is forgotten.
    let recounted = ask(&store, Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(QueueRecount::balance));
    set_clock(began);
    ask(&store, submit(session, 3, &[b"3"])).await.unwrap();
}

#[tokio::test]
async fn many_queues_and_claims_are_recounted_in_pages() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let one = |queue: &str| Submission {
        queue: name(queue),
        parcel: Parcel::single(Body::new(b"1").unwrap()),
        key: None,
        call: None,
    };
    // Queues of one message, and one session that holds many, one by one and together.
    for submit_no in 1..=3 {
        let submissions = (0..1_000).map(|nth| one(&format!("q{}", submit_no * 1_000 + nth))).collect();
        ask(&store, Submit { submissions, ..submit(session, submit_no, &[b"0"]) }).await.unwrap();
    }
    for submit_no in 4..=15 {
        let submissions = (0..1_000).map(|_| one("q")).collect();
        ask(&store, Submit { submissions, ..submit(session, submit_no, &[b"0"]) }).await.unwrap();
    }
    for claim_no in 1..=200 {
        ask(&store, claim(session, claim_no, if claim_no < 100 { 1 } else { 100 })).await.unwrap();
    }
    let look = Monitor::start(&server);
    let recounted = ask(&store, Recount { max_hold_ms: 60_000 }).await.unwrap();
    let seen = look.end(&server);
    assert_eq!(recounted.queues.len(), 3_001);
    assert!(recounted.queues.iter().all(QueueRecount::balance));
    let of_q = recounted.queues.iter().find(|queue| queue.books.queue == name("q")).unwrap();
    assert_eq!(of_q.in_flight.count, 99 + 101 * 100);
    let held: Vec<_> = ["recount", "recount_plan", "recount_page", "hold"].map(|script| seen[script]).into();
    assert!(held.iter().all(|most| most.commands <= 2_500), "{seen:?}");
    assert!(held.iter().all(|most| most.words <= 8_000), "{seen:?}");
    // Messages move again, also in queues that were told of the hold.
    ask(&store, settle(session, 1, 1, 1, Outcome::DONE)).await.unwrap();
    ask(&store, submit(session, 16, &[b"1"])).await.unwrap();
}
