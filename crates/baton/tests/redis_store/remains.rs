//! Sessions that died in the middle of everything: those that live sweep what is left, also where nothing else happens.

use std::{sync::Arc, time::Duration};

use baton::{
    MessageId, SessionId,
    store::{message::*, *},
};
use bytes::Bytes;

use crate::{RedisServer, behind, claim, name, store, submit};

/// Joins with a lease that is soon over.
async fn join(store: &RedisStore, kind: Kind, lease_ms: u64) -> SessionId {
    let (session, host, pid, queues) = (SessionId::random(), "here".to_owned(), 1, vec![name("q"), name("other")]);
    let offers = vec![Offer { source: name("s"), queue: name("q"), definition: Digest::of(b"s"), adopts: false }];
    ask(store, Join { session, kind, host, pid, queues, lease_ms, heartbeat_ms: 10, offers, former: None })
        .await
        .unwrap();
    session
}

/// The keys that name a session, in their own name or in what they hold.
fn naming(server: &RedisServer, session: SessionId) -> Vec<String> {
    let id = session.to_string();
    let holds = |key: &str| {
        let read = match behind::<String>(server, &format!("TYPE {key}")).as_str() {
            "hash" => format!("HGETALL {key}"),
            "set" => format!("SMEMBERS {key}"),
            "zset" => format!("ZRANGE {key} 0 -1"),
            "list" => format!("LRANGE {key} 0 -1"),
            _ => format!("GETRANGE {key} 0 -1"),
        };
        format!("{:?}", behind::<redis::Value>(server, &read)).contains(&id)
    };
    behind::<Vec<String>>(server, "KEYS *").into_iter().filter(|key| key.contains(&id) || holds(key)).collect()
}

#[tokio::test]
async fn nothing_names_a_session_that_was_killed_once_the_living_have_found_it_out() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let living = join(&store, Kind::Node, 60_000).await;
    let mut dead = Vec::new();
    for kind in [Kind::Node, Kind::Client] {
        let session = join(&store, kind, 300).await;
        dead.push(session);
        if kind == Kind::Node {
            ask(&store, Take { session, source: name("s") }).await.unwrap();
        }
        // Short ones and a long one, which is staged; some of them held, one of them a call that tells and is followed.
        let mut calling = submit(session, 1, &[b"1"]);
        calling.submissions[0].call = Some(Calling::Begins { linger_ms: None, share: false });
        let SubmissionVerdict::Begun { first, born } = ask(&store, calling).await.unwrap().submissions[0] else {
            panic!("not stored")
        };
        ask(&store, claim(session, 1, 999)).await.unwrap();
        ask(&store, submit(session, 2, &[&[b'1'; 100_000]])).await.unwrap();
        for number in 3..140 {
            ask(&store, submit(session, number, &[b"1"])).await.unwrap();
        }
        ask(&store, claim(session, 2, 9)).await.unwrap();
        let events = vec![NewEvent { key: None, bytes: Bytes::from_static(b"1") }];
        let (queue, id, max_log) = (name("q"), MessageId(first), 1 << 20);
        let emit = Emit { session, claim_no: 1, queue: queue.clone(), id, number: 1, events, max_log, force: false };
        ask(&store, emit).await.unwrap();
        let call = CallId { queue, id, born: Some(born) };
        let follow = FollowCall { session, call: call.clone(), from: 2, number: 1, max_bytes: 1_000 };
        ask(&store, follow).await.unwrap();
        ask(&store, CancelCall { call, if_forsaken: false }).await.unwrap();
        // It waits for another queue, with a claim that the store keeps, and for what others compute.
        let waits = Claim { queue: name("other"), ..claim(session, 2, 9) };
        ask(&store, waits.clone()).await.unwrap();
        store.wait(session, Arc::new(vec![Claim { claim_no: 3, ..waits }])).await.unwrap();
        for key in ["mine", "shared"] {
            let key =
                CacheKey::new(format!("{key}{}", if key == "mine" { session.to_string() } else { String::new() }));
            ask(&store, CacheGet { session, key, number: 1, lasts_ms: 60_000 }).await.unwrap();
        }
    }
    ask(&store, RemovalBegin { session: dead[1], queue: name("q") }).await.unwrap();
    let look = async {
        loop {
            let beat = Beat { session: living, report: Bytes::new(), asks: Vec::new() };
            for target in ask(&store, beat).await.unwrap().expired {
                ask(&store, Reap { session: living, target }).await.unwrap();
            }
            let left: Vec<String> = dead.iter().flat_map(|session| naming(&server, *session)).collect();
            // Who held the baton or removed is shown, not kept: a field of the source's and the queue's own record.
            if left.iter().all(|key| ["{fleet/0}:o:s", "{fleet/0}:q:q"].contains(&key.as_str())) {
                break;
            }
            println!("{left:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), look).await.is_ok(), "something stays behind");
}
