//! Bodies: long ones past the scripts, missing ones found.

use baton::{
    MessageId, SessionId,
    store::{message::*, *},
};

use crate::{behind, claim, commands, join, monitor::Monitor, name, redis_server::RedisServer, settle, store, submit};

/// A parcel of this many bodies, far too long to pass through a script.
fn long_bodies(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|nth| format!("\"{nth}{}\"", "x".repeat(1_000 + nth)).into_bytes()).collect()
}

fn claimed_bodies(claimed: Claimed) -> Vec<Vec<u8>> {
    assert!(!claimed.spans.is_empty(), "nothing was claimed");
    claimed.spans.iter().flat_map(|(_, parcel)| parcel.bodies().map(|body| body.to_vec())).collect()
}

#[tokio::test]
async fn long_parcels_are_stored_once_and_given_in_whole_and_in_part() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let bodies = long_bodies(20);
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    for submit_no in 1..=3 {
        // A server that forgot the scripts has staged the bytes and not taken them: the call is made again.
        let _: String = behind(&server, "FUNCTION FLUSH");
        ask(&store, submit(session, submit_no, &bodies)).await.unwrap();
        ask(&store, submit(session, submit_no, &bodies)).await.unwrap();
    }
    let staged: Vec<String> = behind(&server, "KEYS *:t:*");
    for key in &staged {
        let ttl: i64 = behind(&server, &format!("PTTL {key}"));
        assert!(ttl > 0, "what a repeat staged goes by itself: {key} {ttl}");
    }
    assert_eq!(behind::<Vec<String>>(&server, "KEYS *:b:*").len(), 3);
    for key in behind::<Vec<String>>(&server, "KEYS *:b:*") {
        assert_eq!(behind::<i64>(&server, &format!("PTTL {key}")), -1, "{key} must stay");
    }
    // One whole parcel and part of the next; the rest of it, and a repeat; the third.
    let first = claimed_bodies(ask(&store, claim(session, 1, 27)).await.unwrap());
    assert_eq!(first, [&bodies[..], &bodies[..7]].concat());
    let second = claimed_bodies(ask(&store, claim(session, 2, 13)).await.unwrap());
    assert_eq!(second, bodies[7..]);
    assert_eq!(claimed_bodies(ask(&store, claim(session, 2, 13)).await.unwrap()), second);
    assert_eq!(claimed_bodies(ask(&store, claim(session, 3, 99)).await.unwrap()), bodies);
}

#[tokio::test]
async fn bodies_that_went_while_they_were_read_mean_a_lost_claim() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let bodies = long_bodies(20);
    ask(&store, submit(session, 1, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>())).await.unwrap();
    ask(&store, claim(session, 1, 5)).await.unwrap();
    // As if another had been given the messages after this session was reaped, and had settled them.
    let _: u64 = behind(&server, "DEL {fleet/0}:b:q:1");
    ask(&store, Leave { session }).await.unwrap();
    assert_eq!(ask(&store, claim(session, 1, 5)).await, Err(StoreError::Refused(Refusal::Stale)));
}

#[tokio::test]
async fn missing_bodies_are_found_in_one_step_and_in_pages() {
    let server = RedisServer::start(&[]);
    let whole = store(&server);
    let paging = RedisOptions { recount_at_once: 1, ..RedisOptions::default() };
    let paging = RedisStore::open(&server.url(), name("fleet"), paging).unwrap();
    let session = join(&whole, Kind::Node).await;
    // A message with a short body has it with it, all others have their keys.
    ask(&whole, submit(session, 1, &[b"0"])).await.unwrap();
    let long = [b'1'; 600];
    for submit_no in 2..=5 {
        ask(&whole, submit(session, submit_no, &[&long, &long])).await.unwrap();
    }
    // The short one and a parcel in flight, one half of one delayed, the rest ready.
    ask(&whole, claim(session, 1, 4)).await.unwrap();
    ask(&whole, settle(session, 1, 4, 1, Outcome::Retry { after_ms: 60_000, error: String::new() })).await.unwrap();
    for key in [&format!("g:{session}"), "b:q:2", "c:q:4", "b:q:8"] {
        assert_eq!(behind::<u64>(&server, &format!("DEL {{fleet/0}}:{key}")), 1, "{key}");
    }
    for store in [&whole, &paging] {
        let recounted = ask(store, Recount { max_hold_ms: 10_000 }).await.unwrap();
        assert_eq!(recounted.queues[0].lacking, Lacking { count: 6, first: Some(1) });
        assert!(!recounted.queues[0].balance());
    }
}

#[tokio::test]
async fn short_messages_that_fail_together_cost_a_few_commands() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let one = |n: u64| Submission {
        queue: name("q"),
        parcel: Parcel::single(Body::new(n.to_string().as_bytes()).unwrap()),
        key: None,
        call: None,
    };
    ask(&store, Submit { submissions: (1..=500).map(one).collect(), ..submit(session, 1, &[b"0"]) }).await.unwrap();
    let claimed = ask(&store, claim(session, 1, 500)).await.unwrap();
    assert_eq!(claimed.spans.len(), 500);
    let failed = |first: u64| Run {
        claim_no: 1,
        queue: name("q"),
        range: Range { first, len: 1 },
        outcome: Outcome::Retry { after_ms: 0, error: "in vain".to_owned() },
    };
    let before = commands(&server);
    let settle =
        Settle { session, settle_no: 1, runs: (1..=500).map(failed).collect(), max_results: baton::store::MAX_RESULTS };
    assert!(ask(&store, settle).await.unwrap().refused.is_empty());
    let settled = commands(&server) - before;
    let again = ask(&store, claim(session, 2, 500)).await.unwrap();
    assert_eq!(claimed_bodies(again), (1..=500_u64).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>());
    let claimed = commands(&server) - before - settled;
    assert!(settled < 20 && claimed < 40, "{settled} to settle, {claimed} to claim 500");
}

/// Has long messages fail in every way, and be put back: alone, cut out of their parcel, with and without headers.
async fn failing(store: &dyn Store) -> (Vec<Claimed>, Vec<ErrorRecord>, Books) {
    let session = SessionId::from_u128(7);
    let (host, queues, offers) = ("here".to_owned(), vec![name("q")], Vec::new());
    let (lease_ms, heartbeat_ms, former) = (60_000, 100, None);
    let node = Join { session, kind: Kind::Node, host, pid: 1, queues, lease_ms, heartbeat_ms, offers, former };
    ask(store, node).await.unwrap();
    let long: Vec<Vec<u8>> = (0..4).map(|nth| format!("\"{nth}{}\"", "x".repeat(9_000 + nth)).into_bytes()).collect();
    let long: Vec<&[u8]> = long.iter().map(Vec::as_slice).collect();
    let huge = vec![b'1'; 300_000];
    ask(store, submit(session, 1, &long)).await.unwrap();
    for submit_no in 2..=6 {
        ask(store, submit(session, submit_no, &[&huge])).await.unwrap();
    }
    let run = |claim_no, first, len, outcome| Run { claim_no, queue: name("q"), range: Range { first, len }, outcome };
    let retry = |error: &str| Outcome::Retry { after_ms: 0, error: error.to_owned() };
    let dead = || Outcome::Failed { error: "in vain".to_owned() };
    let mut claims = vec![ask(store, claim(session, 1, 9)).await.unwrap()];
    let runs =
        vec![run(1, 1, 1, dead()), run(1, 2, 2, retry("once")), run(1, 4, 1, retry("")), run(1, 5, 5, retry("once"))];
    ask(store, Settle { session, settle_no: 1, runs, max_results: baton::store::MAX_RESULTS }).await.unwrap();
    claims.push(ask(store, claim(session, 2, 9)).await.unwrap());
    let runs = vec![run(2, 2, 1, retry("twice")), run(2, 3, 2, dead()), run(2, 5, 5, dead())];
    ask(store, Settle { session, settle_no: 2, runs, max_results: baton::store::MAX_RESULTS }).await.unwrap();
    claims.push(ask(store, claim(session, 3, 9)).await.unwrap());
    let peek = Peek { queue: name("q"), after: 0, upto: 100, limit: 100, max_bytes: u64::MAX };
    let errors = ask(store, peek).await.unwrap().errors;
    ask(store, RemovalBegin { session, queue: name("q") }).await.unwrap();
    let ids = (1..=8).map(MessageId).collect();
    let requeue = Dispose { session, dispose_no: 1, queue: name("q"), ids, disposal: Disposal::Requeue };
    for _ in 0..2 {
        assert_eq!(ask(store, requeue.clone()).await.unwrap().count, 7, "and a repeat says the same");
    }
    let drain = Dispose { dispose_no: 2, ids: vec![MessageId(9), MessageId(8)], disposal: Disposal::Remove, ..requeue };
    assert_eq!(ask(store, drain).await.unwrap().count, 1);
    claims.push(ask(store, claim(session, 4, 9)).await.unwrap());
    let recounted = ask(store, Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues[0].balance(), "{recounted:?}");
    (claims, errors, recounted.queues[0].books.clone())
}

#[tokio::test]
async fn long_messages_that_fail_and_are_put_back_are_as_in_memory_and_no_call_does_all() {
    let server = RedisServer::start(&[]);
    let look = Monitor::start(&server);
    let (mut claims, mut errors, books) = failing(&store(&server)).await;
    let seen = look.end(&server);
    let (mut expected, mut expected_errors, expected_books) = failing(&MemoryStore::default()).await;
    // Only the clocks differ.
    for (span, _) in claims.iter_mut().chain(&mut expected).flat_map(|claimed| &mut claimed.spans) {
        span.born = 0;
    }
    for error in errors.iter_mut().chain(&mut expected_errors) {
        (error.born, error.at) = (0, 0);
    }
    let given = |claims: &[Claimed]| claims.iter().map(|claimed| claimed.spans.clone()).collect::<Vec<_>>();
    assert!(given(&claims) == given(&expected), "what is given differs");
    assert!(errors == expected_errors, "the errors differ");
    assert_eq!(books, expected_books);
    // Two megabytes are put back in several calls: half a megabyte in each, and a repeat.
    assert!(seen["dispose"].calls >= 4, "{seen:?}");
}
