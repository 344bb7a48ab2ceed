//! What a session held goes back in calls that do a bounded amount of work, also if whoever reaps it dies in between.

use baton::{
    SessionId,
    store::{message::*, *},
};
use bytes::Bytes;

use crate::{RedisServer, behind, claim, join, name, store, submit};

/// The most entries that one call makes.
const AT_ONCE: u64 = 1_000;
/// What the first call takes of two claims: a claim counts as two entries by itself.
const FIRST: u64 = AT_ONCE - 2;

/// A session that holds so many messages that were pushed singly, and another one.
async fn holding(store: &RedisStore, count: u64) -> (SessionId, SessionId) {
    let (holder, other) = (join(store, Kind::Node).await, join(store, Kind::Node).await);
    let one = |n: u64| Submission {
        queue: name("q"),
        parcel: Parcel::single(Body::new(n.to_string().as_bytes()).unwrap()),
        key: None,
        call: None,
    };
    for (submit_no, first) in (1..).zip((1..=count).step_by(1_000)) {
        let submissions = (first..=count.min(first + 999)).map(one).collect();
        let submit = Submit { submissions, ..submit(holder, submit_no, &[b"0"]) };
        ask(store, submit).await.unwrap();
    }
    let mut held = 0;
    for claim_no in 1.. {
        held += ask(store, claim(holder, claim_no, 1_000)).await.unwrap().spans.len() as u64;
        if held == count {
            break;
        }
    }
    (holder, other)
}

/// One call of an operation's function, as a process makes it that dies before the next.
fn one_call(server: &RedisServer, operation: &str, sessions: &[SessionId]) -> Vec<String> {
    let listed: Vec<Vec<redis::Value>> = behind(server, "FUNCTION LIST");
    let library: String = redis::from_redis_value(listed[0][1].clone()).unwrap();
    let mut call = redis::cmd("FCALL");
    call.arg(format!("{library}_{operation}")).arg(1).arg("{fleet/0}");
    for session in sessions {
        call.arg(session.to_string());
    }
    call.query(&mut server.connection()).unwrap()
}

async fn books_balance(store: &RedisStore) -> Books {
    let recounted = ask(store, Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert!(recounted.queues[0].balance(), "{recounted:?}");
    recounted.queues[0].books.clone()
}

/// The ids and crashes of what is claimed next.
async fn next(store: &RedisStore, session: SessionId, n: u32) -> Vec<(u64, u32)> {
    let spans = ask(store, claim(session, 1, n)).await.unwrap().spans;
    spans.iter().map(|(span, _)| (span.range.first, span.crashes)).collect()
}

#[tokio::test]
async fn a_reap_that_is_cut_off_is_finished_by_whoever_is_told_of_it() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let (holder, other) = holding(&store, 2 * AT_ONCE + 500).await;
    let _: u64 = behind(&server, &format!("ZADD {{fleet/0}}:sessions 0 {holder}"));
    let reaped = one_call(&server, "reap", &[other, holder]);
    assert_eq!((&*reaped[0], &*reaped[1], reaped.last()), ("OK", "1", Some(&FIRST.to_string())));
    // The session is over, and what it held is either back or in flight.
    let late = ask(&store, claim(holder, 99, 1)).await.unwrap_err();
    assert_eq!(late, Refusal::Stale.into());
    assert_eq!(ask(&store, submit(holder, 99, &[b"1"])).await.unwrap_err(), Refusal::Stale.into());
    let books = books_balance(&store).await;
    assert_eq!((books.ready, books.in_flight), (FIRST, 2 * AT_ONCE + 500 - FIRST));
    assert!(ask(&store, TakeSurvey).await.unwrap().sessions.iter().all(|session| session.session != holder));
    let told = ask(&store, Beat { session: other, report: Bytes::new(), asks: Vec::new() }).await.unwrap();
    assert_eq!(told.expired, [holder]);
    let reaped = ask(&store, Reap { session: other, target: holder }).await.unwrap();
    assert_eq!(reaped.counts(), Some((2 * AT_ONCE + 500 - FIRST, 0)));
    let books = books_balance(&store).await;
    assert_eq!((books.ready, books.in_flight), (2 * AT_ONCE + 500, 0));
    assert_eq!(next(&store, other, 3).await, [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(ask(&store, Reap { session: other, target: holder }).await.unwrap(), Reaped::Gone);
}

#[tokio::test]
async fn who_leaves_with_many_messages_hands_all_of_them_back_without_a_loss() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let (holder, other) = holding(&store, AT_ONCE + 500).await;
    assert_eq!(one_call(&server, "leave", &[holder]), ["OK", "1"]);
    ask(&store, Leave { session: holder }).await.unwrap();
    assert_eq!(books_balance(&store).await.ready, AT_ONCE + 500);
    assert_eq!(next(&store, other, 2).await, [(1, 0), (2, 0)]);
}
