//! The short ways of claims and reports: taken where nothing speaks against them, and they leave what the long ways leave.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use baton::{
    SessionId,
    store::{message::*, *},
};
use redis::Value;

use crate::{
    RedisServer, behind, books, claim, join,
    monitor::{Monitor, Most},
    name, set_count, settle, store, submit,
};

/// Commands of a claim by the short way that leaves something, or that is entered among those who wait; of a served one; of a
/// report. By the long way they are more.
const CLAIM: usize = 9;
const CLAIM_AND_WAIT: usize = 9;
const SERVE: usize = 10;
const SETTLE: usize = 8;

async fn push(store: &RedisStore, session: SessionId, numbers: std::ops::RangeInclusive<u64>) {
    for no in numbers {
        let stored = ask(store, submit(session, no, &[no.to_string().as_bytes()])).await.unwrap().submissions;
        assert!(matches!(stored[..], [SubmissionVerdict::Stored { .. }]), "{stored:?}");
    }
}

/// A queue whose inbox is open and empty, after submit, claim and settle number 1.
async fn opened(store: &RedisStore) -> SessionId {
    let session = join(store, Kind::Node).await;
    push(store, session, 1..=1).await;
    assert_eq!(ids(&ask(store, claim(session, 1, 1)).await.unwrap()), [1]);
    ask(store, settle(session, 1, 1, 1, Outcome::DONE)).await.unwrap();
    session
}

fn ids(claimed: &Claimed) -> Vec<u64> {
    claimed.spans.iter().flat_map(|(span, _)| span.range.ids()).map(|id| id.0).collect()
}

async fn is_balanced(store: &RedisStore) -> bool {
    ask(store, Recount { max_hold_ms: 1_000 }).await.unwrap().queues.iter().all(QueueRecount::balance)
}

/// What a script did while `calls` ran.
async fn seen<T>(server: &RedisServer, script: &str, calls: impl Future<Output = T>) -> (T, Most) {
    let look = Monitor::start(server);
    let answer = calls.await;
    (answer, look.end(server).remove(script).unwrap_or_default())
}

#[tokio::test]
async fn most_claims_and_reports_take_the_short_way() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = opened(&store).await;
    push(&store, session, 2..=10).await;
    let (one, look) = seen(&server, "claim", ask(&store, claim(session, 2, 1))).await;
    assert_eq!((ids(&one.unwrap()), look.commands), (vec![2], CLAIM));
    let (rest, look) = seen(&server, "claim", ask(&store, claim(session, 3, 100))).await;
    let rest = rest.unwrap();
    assert_eq!((ids(&rest), look.commands), ((3..=10).collect(), CLAIM_AND_WAIT));
    assert_eq!(rest.rest, Rest::Nothing { next_due_ms: None });
    assert!(is_balanced(&store).await);

    let (done, look) = seen(&server, "settle", ask(&store, settle(session, 2, 2, 1, Outcome::DONE))).await;
    assert_eq!((done.unwrap().refused, look.commands), (vec![], SETTLE));
    // One more that reads how long each is, if they differ.
    let (done, look) = seen(&server, "settle", ask(&store, settle(session, 3, 3, 8, Outcome::DONE))).await;
    assert_eq!((done.unwrap().refused, look.commands), (vec![], SETTLE + 1));
    let Books { pushed, ready, in_flight, done, bytes, .. } = books(&store).await;
    assert_eq!((pushed, ready, in_flight, done, bytes), (10, 0, 0, 10, 0));
    assert!(is_balanced(&store).await);
    for (key, holds) in [("h", "what it holds"), ("g", "what that carries")] {
        let left: u64 = behind(&server, &format!("EXISTS {{fleet/0}}:{key}:{session}"));
        assert_eq!(left, 0, "{holds}");
    }
}

#[tokio::test]
async fn a_claim_that_waits_is_served_by_the_short_way() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = opened(&store).await;
    assert_eq!(ids(&ask(&store, claim(session, 2, 5)).await.unwrap()), [] as [u64; 0]);
    let look = Monitor::start(&server);
    for (claim_no, submit_no) in (2..).zip(2..=4) {
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.wait(session, Arc::new(vec![claim(session, claim_no, 5)])).await }
        });
        while behind::<String>(&server, "INFO clients").contains("blocked_clients:0") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        push(&store, session, submit_no..=submit_no).await;
        let Woken { queues, claimed, .. } = waiting.await.unwrap().unwrap();
        assert_eq!((queues, claimed.len()), (vec![], 1));
        assert_eq!((claimed[0].0, ids(&claimed[0].1)), (claim_no, vec![submit_no]));
    }
    let Most { commands, calls, .. } = look.end(&server)["serve"];
    assert_eq!((commands, calls), (SERVE, 3));
    assert!(is_balanced(&store).await);
}

#[tokio::test]
async fn what_speaks_against_a_short_claim_makes_it_long() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = opened(&store).await;
    let none: [u64; 0] = [];
    let long = async |claim: Claim| {
        let (claimed, look) = seen(&server, "claim", ask(&store, claim)).await;
        let is_long = look.commands > CLAIM_AND_WAIT;
        assert!(is_long || claimed.as_ref().is_ok_and(|it| it.spans.is_empty()) || claimed.is_err(), "{claimed:?}");
        assert!(is_balanced(&store).await);
        claimed
    };
    // A session that is not there.
    assert_eq!(long(claim(SessionId::random(), 1, 1)).await.unwrap_err(), Refusal::Stale.into());
    // Nothing in the inbox.
    assert_eq!(ids(&long(claim(session, 2, 1)).await.unwrap()), none);
    push(&store, session, 2..=20).await;
    // A queue that may be held, and is not.
    set_count(&server, 3, 1.0);
    assert_eq!(ids(&long(claim(session, 2, 1)).await.unwrap()), [2]);
    // One that is paused.
    ask(&store, Order::Pause(name("q"))).await.unwrap();
    assert_eq!(ids(&long(claim(session, 3, 1)).await.unwrap()), none);
    ask(&store, Order::Resume(name("q"))).await.unwrap();
    // Bytes that may not suffice: at least one, and no more than fit.
    assert_eq!(ids(&long(Claim { max_bytes: 1, ..claim(session, 3, 5) }).await.unwrap()), [3]);
    // A number below which others are unused, one of these, one that is used, and one that is too far ahead.
    assert_eq!(ids(&long(claim(session, 6, 1)).await.unwrap()), [4]);
    assert_eq!(ids(&long(claim(session, 4, 1)).await.unwrap()), [5]);
    assert_eq!(ids(&long(claim(session, 7, 1)).await.unwrap()), [6]);
    assert_eq!(ids(&long(claim(session, 5, 1)).await.unwrap()), [7]);
    assert_eq!(ids(&ask(&store, claim(session, 6, 1)).await.unwrap()), [4]);
    assert_eq!(long(claim(session, 90, 1)).await.unwrap_err(), Refusal::OutOfTurn { last: 7 }.into());
    // Something due, which goes first.
    let failed = Outcome::Retry { after_ms: 0, error: "no".to_owned() };
    ask(&store, settle(session, 2, 2, 1, failed)).await.unwrap();
    assert_eq!(ids(&long(claim(session, 8, 2)).await.unwrap()), [2, 8]);
    // Something in the line, which goes first.
    ask(&store, Settle { settle_no: 3, ..settle(session, 8, 8, 1, Outcome::Back) }).await.unwrap();
    assert_eq!(ids(&long(claim(session, 9, 2)).await.unwrap()), [8, 9]);
    let (rest, look) = seen(&server, "claim", ask(&store, claim(session, 10, 1))).await;
    assert_eq!((ids(&rest.unwrap()), look.commands), (vec![10], CLAIM));
    assert!(is_balanced(&store).await);
}

#[tokio::test]
async fn what_is_delayed_and_not_due_is_told_by_the_short_way() {
    let server = RedisServer::start(&[]);
    let store = clocked(&server, "fleet");
    set_clock(&server, &store, 1_700_000_000_000);
    let session = opened(&store).await;
    push(&store, session, 2..=4).await;
    ask(&store, claim(session, 2, 1)).await.unwrap();
    let failed = Outcome::Retry { after_ms: 5_000, error: "no".to_owned() };
    ask(&store, settle(session, 2, 2, 1, failed)).await.unwrap();
    let (rest, look) = seen(&server, "claim", ask(&store, claim(session, 3, 9))).await;
    let rest = rest.unwrap();
    assert_eq!((ids(&rest), look.commands), (vec![3, 4], CLAIM_AND_WAIT + 1));
    assert_eq!(rest.rest, Rest::Nothing { next_due_ms: Some(5_000) });
    push(&store, session, 5..=5).await;
    set_clock(&server, &store, 1_700_000_005_000);
    assert_eq!(ids(&ask(&store, claim(session, 4, 9)).await.unwrap()), [2, 5]);
    assert!(is_balanced(&store).await);
}

#[tokio::test]
async fn what_speaks_against_a_short_report_makes_it_long() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = opened(&store).await;
    push(&store, session, 2..=9).await;
    assert_eq!(ids(&ask(&store, claim(session, 2, 4)).await.unwrap()), [2, 3, 4, 5]);
    let report = |settle_no, first, len| Settle { settle_no, ..settle(session, 2, first, len, Outcome::DONE) };
    let refused = async |settle: Settle| ask(&store, settle).await.unwrap().refused.len();
    // Some of a claim: those that are there, and not once more.
    assert_eq!(refused(report(2, 3, 1)).await, 0);
    assert_eq!(refused(report(3, 3, 1)).await, 1);
    // All of it, of which one is gone; more than it holds; of one that is not there.
    assert_eq!(refused(report(4, 2, 4)).await, 1);
    assert_eq!(refused(report(5, 4, 3)).await, 1);
    assert_eq!(refused(Settle { settle_no: 6, ..settle(session, 9, 2, 4, Outcome::DONE) }).await, 1);
    // A number that was used is answered as before, and one ahead of its turn not at all.
    assert_eq!(refused(report(6, 4, 1)).await, 1);
    let early = ask(&store, report(8, 4, 1)).await.unwrap_err();
    assert_eq!(early, Refusal::OutOfTurn { last: 6 }.into());
    assert_eq!(books(&store).await.in_flight, 3);
    assert!(is_balanced(&store).await);
    // A queue that was held.
    set_count(&server, 3, 1.0);
    let (done, look) = seen(&server, "settle", ask(&store, report(7, 4, 2))).await;
    assert!(done.unwrap().refused.is_empty() && look.commands > SETTLE);
    assert_eq!(refused(report(8, 2, 1)).await, 0);
    let Books { in_flight, done, stale_settles, .. } = books(&store).await;
    assert_eq!((in_flight, done, stale_settles), (0, 5, 12));
    assert!(is_balanced(&store).await);
}

fn clocked(server: &RedisServer, fleet: &str) -> RedisStore {
    let options = RedisOptions { test_clock: true, ..RedisOptions::default() };
    RedisStore::open(&server.url(), name(fleet), options).unwrap()
}

fn set_clock(server: &RedisServer, store: &RedisStore, ms: u64) {
    let _: String = behind(server, &format!("SET {} {ms}", store.test_clock_key()));
}

/// All that is stored of a fleet, by what its keys are called behind its root.
fn stored(server: &RedisServer, fleet: &str) -> BTreeMap<String, Vec<Value>> {
    let root = format!("{{{fleet}/0}}");
    let keys: Vec<String> = behind(server, &format!("KEYS {root}*"));
    let read = |key: &str| match behind::<String>(server, &format!("TYPE {key}")).as_str() {
        "string" => vec![behind(server, &format!("GET {key}"))],
        "list" => behind(server, &format!("LRANGE {key} 0 -1")),
        "zset" => behind(server, &format!("ZRANGE {key} 0 -1 WITHSCORES")),
        "set" => behind(server, &format!("SORT {key} ALPHA")),
        _ => {
            let fields: Vec<(Value, Value)> = behind(server, &format!("HGETALL {key}"));
            let mut fields: Vec<_> = fields.into_iter().map(|pair| Value::Array(vec![pair.0, pair.1])).collect();
            fields.sort_by_key(|field| format!("{field:?}"));
            fields
        }
    };
    // Each fleet has an incarnation of its own.
    let keys = keys.iter().filter(|key| **key != root);
    keys.map(|key| (key[root.len()..].to_owned(), read(key))).collect()
}

#[tokio::test]
async fn the_short_way_leaves_what_the_long_way_leaves() {
    let server = RedisServer::start(&[]);
    let (node, other) = (SessionId::random(), SessionId::random());
    // What one claim may bring is more than these have, but too little for the short way to be sure of it.
    let ways = [("short", u64::MAX), ("long", 100)];
    let mut left = Vec::new();
    for (fleet, max_bytes) in ways {
        let store = clocked(&server, fleet);
        set_clock(&server, &store, 1_700_000_000_000);
        for session in [node, other] {
            let (host, queues) = ("here".to_owned(), vec![name("q")]);
            let join = Join {
                session,
                kind: Kind::Node,
                host,
                pid: 1,
                queues,
                lease_ms: 60_000,
                heartbeat_ms: 100,
                offers: Vec::new(),
                former: None,
            };
            ask(&store, join).await.unwrap();
            assert!(ask(&store, claim(session, 1, 1)).await.unwrap().spans.is_empty());
        }
        // The first one opens the inbox. Claims that take all they may, or all there is; both with others who wait.
        let (mut submit_no, mut used, mut seen) = (1, BTreeMap::from([(node, 1), (other, 0)]), Vec::new());
        push(&store, other, 1..=1).await;
        ask(&store, Claim { max_bytes, ..claim(node, 1, 1) }).await.unwrap();
        for (nth, (bodies, n)) in (1..).zip([(1, 1), (3, 1), (2, 9), (0, 1), (1, 9), (4, 3), (5, 9), (9, 9)]) {
            set_clock(&server, &store, 1_700_000_000_000 + nth);
            push(&store, other, submit_no + 1..=submit_no + bodies).await;
            submit_no += bodies;
            let session = if nth % 3 == 0 { other } else { node };
            let claimed = ask(&store, Claim { max_bytes, ..claim(session, used[&session] + 1, n) }).await.unwrap();
            *used.entry(session).or_default() += u64::from(!claimed.spans.is_empty());
            seen.push((claimed.spans, claimed.rest, stored(&server, fleet)));
        }
        left.push(seen);
    }
    for (short, long) in left[0].iter().zip(&left[1]) {
        assert_eq!(short, long);
    }
}

/// Two singles that follow each other, with what came back between them.
#[tokio::test]
async fn a_repeated_claim_gives_the_same_in_the_same_order() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let (one, other) = (join(&store, Kind::Node).await, join(&store, Kind::Node).await);
    ask(&store, submit(one, 1, &[b"1", b"2"])).await.unwrap();
    push(&store, one, 2..=3).await;
    assert_eq!(ids(&ask(&store, claim(one, 1, 2)).await.unwrap()), [1, 2]);
    assert_eq!(ids(&ask(&store, claim(other, 1, 1)).await.unwrap()), [3]);
    ask(&store, settle(one, 1, 1, 2, Outcome::Back)).await.unwrap();
    ask(&store, settle(other, 1, 3, 1, Outcome::Back)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(ids(&ask(&store, claim(one, 2, 9)).await.unwrap()), [3, 1, 2, 4]);
    }
    assert!(is_balanced(&store).await);
}
