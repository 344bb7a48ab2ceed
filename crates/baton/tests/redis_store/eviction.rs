//! A server that may drop what is stored: nothing new comes in, and what is there is worked off.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use baton::store::{message::*, *};
use bytes::Bytes;

use crate::{RedisServer, behind, claim, join, name, settle, store, submit};

fn told_by(store: &RedisStore) -> Arc<Mutex<Vec<StoreEvent>>> {
    let told = Arc::<Mutex<Vec<StoreEvent>>>::default();
    let ear = told.clone();
    store.hear(Arc::new(move |event| {
        if !matches!(event, StoreEvent::KeepsNothing { .. }) {
            ear.lock().unwrap().push(event.clone());
        }
    }));
    told
}

fn is_refused(error: &StoreError) -> bool {
    matches!(error, StoreError::NoRoom(why) if why.ends_with("(`CONFIG SET maxmemory-policy noeviction`)"))
}

fn set_policy(server: &RedisServer, policy: &str) {
    behind::<()>(server, &format!("CONFIG SET maxmemory-policy {policy}"));
}

#[tokio::test]
async fn no_fleet_begins_on_a_server_that_may_evict() {
    let server = RedisServer::start(&["--maxmemory-policy", "allkeys-lru"]);
    let store = store(&server);
    let told = told_by(&store);
    let survey = ask(&store, TakeSurvey).await.unwrap();
    assert!(survey.sessions.is_empty() && survey.queues.is_empty());
    assert!(matches!(&told.lock().unwrap()[..], [StoreEvent::MayEvict { policy, .. }] if policy == "allkeys-lru"));
    for kind in [Kind::Node, Kind::Client] {
        let (session, host, pid, queues, offers) = (baton::SessionId::random(), "here".to_owned(), 1, vec![], vec![]);
        let joining =
            Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former: None };
        let refused = ask(&store, joining).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Unfit(why) if why.contains("set it to noeviction")), "{refused:?}");
    }
    assert_eq!(behind::<u64>(&server, "DBSIZE"), 0);
}

#[tokio::test]
async fn while_the_server_may_evict_nothing_new_comes_in_and_everything_else_goes_on() {
    let server = RedisServer::start(&[]);
    let open = store(&server);
    let told = told_by(&open);
    let session = join(&open, Kind::Node).await;
    ask(&open, submit(session, 1, &[b"1", b"2", b"3"])).await.unwrap();
    set_policy(&server, "volatile-ttl");
    let beat = || Beat { session, report: Bytes::new(), asks: Vec::new() };
    let changed = async |events: usize| {
        let look = async {
            while told.lock().unwrap().len() < events {
                ask(&open, beat()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), look).await.unwrap();
    };
    changed(1).await;
    let refused = ask(&open, submit(session, 2, &[b"4"])).await.unwrap_err();
    assert!(is_refused(&refused), "{refused:?}");
    // One that comes now, over a connection of its own.
    let other = store(&server);
    let visitor = join(&other, Kind::Node).await;
    assert!(is_refused(&ask(&other, submit(visitor, 1, &[b"4"])).await.unwrap_err()));
    assert_eq!(ask(&open, claim(session, 1, 9)).await.unwrap().spans.len(), 1);
    let follow_up =
        Submission { queue: name("q"), parcel: Parcel::single(Body::new(b"5").unwrap()), key: None, call: None };
    let with_follow_up = Outcome::Done { result: None, follow_ups: vec![follow_up] };
    let refused = ask(&open, settle(session, 1, 1, 1, with_follow_up)).await.unwrap_err();
    assert!(is_refused(&refused), "{refused:?}");
    let with_result = Outcome::Done { result: Some(Bytes::from_static(b"17")), follow_ups: vec![] };
    ask(&open, settle(session, 1, 1, 1, with_result)).await.unwrap();
    let mut dead = settle(session, 2, 2, 2, Outcome::Failed { error: "no".to_owned() });
    dead.runs[0].claim_no = 1;
    ask(&open, dead).await.unwrap();
    set_policy(&server, "noeviction");
    changed(2).await;
    ask(&open, submit(session, 2, &[b"4"])).await.unwrap();
    let told = told.lock().unwrap();
    assert!(
        matches!(&told[..], [StoreEvent::MayEvict { .. }, StoreEvent::EvictsNoMore { dropped: 0, .. }]),
        "{told:?}"
    );
}

/// Without a beat: what is known of the policy is at most a second old when something new is sent.
#[tokio::test]
async fn one_who_only_pushes_looks_too_and_is_told_what_was_dropped() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let told = told_by(&store);
    let session = join(&store, Kind::Client).await;
    set_policy(&server, "allkeys-random");
    let mut submit_no = 0;
    let pushing = async {
        loop {
            match ask(&store, submit(session, submit_no + 1, &[b"1"])).await {
                Ok(_) => submit_no += 1,
                Err(error) => break error,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(is_refused(&tokio::time::timeout(Duration::from_secs(30), pushing).await.unwrap()));
    behind::<()>(&server, "SET other value");
    behind::<()>(&server, "CONFIG SET maxmemory 1");
    let dropped = async || behind::<String>(&server, "INFO stats").contains("evicted_keys:0");
    while dropped().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    behind::<()>(&server, "CONFIG SET maxmemory 0");
    set_policy(&server, "noeviction");
    let waiting = async {
        while told.lock().unwrap().len() < 2 {
            // The session may be gone: that is an answer too.
            ask(&store, submit(session, submit_no + 1, &[b"1"])).await.ok();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
    let told = told.lock().unwrap();
    assert!(matches!(told[1], StoreEvent::EvictsNoMore { dropped, .. } if dropped > 0), "{told:?}");
}
