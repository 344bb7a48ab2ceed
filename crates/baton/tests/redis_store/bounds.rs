//! No script does more the more there is: with many messages held, delayed or dead, every call of every kind runs a
//! bounded number of commands over a bounded number of words. What is counted is what the server itself tells.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use baton::{
    MessageId, SessionId,
    store::{
        message::*,
        session::{Session, SessionOptions},
        *,
    },
};

use crate::{
    RedisServer, behind, claim, join,
    monitor::{Monitor, Most},
    name, store, submit,
};

/// Far more than any one call may touch.
const MANY: u64 = 50_000;
/// The most commands of one call, and the most words of them: about a microsecond each, and a tenth of one.
const COMMANDS: usize = 4_100;
const WORDS: usize = 13_000;

pub(crate) async fn session(store: &Arc<RedisStore>, lease: Duration) -> Session {
    let options = SessionOptions { kind: Kind::Node, queues: vec![name("q")], lease, ..SessionOptions::client() };
    Session::join(store.clone(), options).await.unwrap()
}

/// Messages that are pushed one by one; who pushed them.
pub(crate) async fn push(store: &RedisStore, count: u64) -> SessionId {
    let client = join(store, Kind::Client).await;
    let one = |n: u64| Submission {
        queue: name("q"),
        parcel: Parcel::single(Body::new(n.to_string().as_bytes()).unwrap()),
        key: None,
        call: None,
    };
    for (submit_no, first) in (1..).zip((1..=count).step_by(1_000)) {
        let submissions = (first..first + 1_000).map(one).collect();
        ask(store, Submit { submissions, ..submit(client, submit_no, &[b"0"]) }).await.unwrap();
    }
    client
}

/// Claims all there is; the claims with what they hold.
pub(crate) async fn claim_all(session: &Session) -> Vec<(u64, Vec<Range>)> {
    let mut claims = Vec::new();
    while let Some(held) = session.claim(name("q"), 1_000, 1 << 24).await.unwrap().held {
        let (claim_no, _, spans) = held.into_parts();
        claims.push((claim_no, spans.iter().map(|(span, _)| span.range).collect()));
    }
    claims
}

/// Reports each message by itself, all of them with one outcome.
pub(crate) async fn settle_all(session: &Session, claims: &[(u64, Vec<Range>)], outcome: &Outcome) {
    for (claim_no, ranges) in claims {
        let of = |id| Run { claim_no: *claim_no, queue: name("q"), range: Range::one(id), outcome: outcome.clone() };
        let reported = session.settle(ranges.iter().flat_map(|range| range.ids()).map(of).collect()).await.unwrap();
        assert!(reported.refused.is_empty() && reported.unplaced.is_empty());
    }
}

pub(crate) async fn balanced(store: &Arc<RedisStore>) -> Books {
    let recounted = ask(&**store, Recount { max_hold_ms: 60_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(QueueRecount::balance), "{recounted:?}");
    recounted.queues[0].books.clone()
}

fn check(seen: &BTreeMap<String, Most>, scripts: &[&str]) {
    for script in scripts {
        assert!(seen.contains_key(*script), "{script} was not called: {seen:?}");
    }
    let over = seen.iter().filter(|(_, most)| most.commands > COMMANDS || most.words > WORDS);
    assert_eq!(over.collect::<Vec<_>>(), [], "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_failures_and_what_people_do_about_it_are_calls_of_bounded_work() {
    let server = RedisServer::start(&[]);
    let store = Arc::new(store(&server));
    let look = Monitor::start(&server);
    let node = session(&store, Duration::from_secs(60)).await;
    push(&store, MANY).await;
    for error in ["once", "twice"] {
        let claims = claim_all(&node).await;
        balanced(&store).await;
        settle_all(&node, &claims, &Outcome::Retry { after_ms: 0, error: error.to_owned() }).await;
        assert_eq!(balanced(&store).await.delayed, MANY);
    }
    let claims = claim_all(&node).await;
    settle_all(&node, &claims, &Outcome::Failed { error: "in vain".to_owned() }).await;
    assert_eq!(balanced(&store).await.failed, MANY);
    node.begin_removal(name("q")).await.unwrap();
    let half = MANY / 2;
    let ids = |from: u64, to: u64| (from..=to).map(MessageId).collect();
    assert_eq!(node.dispose(name("q"), ids(1, half), Disposal::Requeue).await.unwrap().count, half);
    assert_eq!(node.dispose(name("q"), ids(half + 1, MANY), Disposal::Remove).await.unwrap().count, half);
    let books = balanced(&store).await;
    assert_eq!((books.ready, books.removed, books.failed), (half, half, 0));
    node.leave().await.unwrap();
    assert!(ask(&*store, Destroy).await.unwrap().is_some());
    check(&look.end(&server), &["submit", "claim", "settle", "dispose", "recount_page", "hold", "leave", "destroy"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_with_much_in_hand_is_calls_of_bounded_work() {
    let server = RedisServer::start(&[]);
    let store = Arc::new(store(&server));
    let look = Monitor::start(&server);
    let client = push(&store, MANY).await;
    // Who leaves hands back what it holds.
    let leaving = session(&store, Duration::from_secs(60)).await;
    claim_all(&leaving).await;
    leaving.leave().await.unwrap();
    assert_eq!(balanced(&store).await.ready, MANY);
    // Who is past its lease is reaped.
    let silent = join(&store, Kind::Node).await;
    for claim_no in 1.. {
        if ask(&*store, claim(silent, claim_no, 1_000)).await.unwrap().spans.is_empty() {
            break;
        }
    }
    let _: u64 = behind(&server, &format!("ZADD {{fleet/0}}:sessions 0 {silent}"));
    let reaped = ask(&*store, Reap { session: client, target: silent }).await.unwrap();
    assert_eq!(reaped.counts(), Some((MANY, 0)));
    assert_eq!(balanced(&store).await.ready, MANY);
    check(&look.end(&server), &["leave", "reap", "claim", "recount_page"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_with_many_claims_is_calls_of_bounded_work() {
    const CLAIMS: u64 = 3_000;
    let server = RedisServer::start(&[]);
    let store = Arc::new(store(&server));
    let client = push(&store, CLAIMS).await;
    let silent = join(&store, Kind::Node).await;
    for claim_no in 1..=CLAIMS {
        ask(&*store, claim(silent, claim_no, 1)).await.unwrap();
    }
    let _: u64 = behind(&server, &format!("ZADD {{fleet/0}}:sessions 0 {silent}"));
    let look = Monitor::start(&server);
    let reaped = ask(&*store, Reap { session: client, target: silent }).await.unwrap();
    assert_eq!(reaped.counts(), Some((CLAIMS, 0)));
    let seen = look.end(&server);
    assert_eq!(balanced(&store).await.ready, CLAIMS);
    check(&seen, &["reap"]);
    assert!(seen["reap"].calls >= 8, "{seen:?}");
}
