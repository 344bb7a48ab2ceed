//! Several stores on one file, several fleets in one file, several calls in one commit.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use baton::{
    SessionId,
    store::{
        Answer, Claim, Destroy, Operation as _, Recount, Refusal, Store as _, StoreError, SubmissionVerdict, Submitted,
        TakeSurvey, ask,
    },
};

use crate::{join, name, open, submit};

fn claim(session: SessionId, claim_no: u64, queue: &str) -> Claim {
    Claim { session, queue: name(queue), claim_no, n: 10, max_bytes: 1_000 }
}

#[tokio::test]
async fn two_stores_on_one_file_see_each_other_and_wake_each_other() {
    let folder = tempfile::tempdir().unwrap();
    see_and_wake(&folder.path().join("x.db")).await;
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_is_no_hindrance() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long".repeat(40));
    std::fs::create_dir(&long).unwrap();
    see_and_wake(&long.join("x.db")).await;
}

async fn see_and_wake(path: &Path) {
    let (one, two) = (open(path, "baton", true), open(path, "baton", false));
    let (first, second) = (SessionId::random(), SessionId::random());
    ask(&one, join(first)).await.unwrap();
    ask(&two, join(second)).await.unwrap();
    let mut slowest = Duration::ZERO;
    for round in 1..=20 {
        assert_eq!(ask(&two, claim(second, round, "a")).await.unwrap().spans, []);
        let waiting = async {
            let woken = two.wait(second, Arc::new(vec![claim(second, round, "a")])).await.unwrap();
            assert_eq!(woken.claimed[0].1.spans.len(), 1);
            Instant::now()
        };
        let pushing = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            ask(&one, submit(first, round, "a")).await.unwrap();
            Instant::now()
        };
        let (woken, pushed) = tokio::join!(waiting, pushing);
        slowest = slowest.max(woken.saturating_duration_since(pushed));
    }
    assert!(slowest < Duration::from_millis(500), "a wake-up was lost: {slowest:?}");
}

/// As processes leave them that were killed.
#[cfg(unix)]
#[tokio::test]
async fn sockets_of_dead_processes_go_while_nothing_happens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (store, session) = (open(&path, "baton", true), SessionId::random());
    ask(&store, join(session)).await.unwrap();
    let sockets = folder.path().join("x.db-wake");
    std::fs::create_dir(&sockets).unwrap();
    for nth in 0..20 {
        drop(std::os::unix::net::UnixDatagram::bind(sockets.join(nth.to_string())).unwrap());
    }
    let alive = std::os::unix::net::UnixDatagram::bind(sockets.join("alive")).unwrap();
    let left = || std::fs::read_dir(&sockets).unwrap().count();
    assert_eq!(left(), 21);
    let deadline = Instant::now() + Duration::from_secs(60);
    while left() > 2 {
        assert!(Instant::now() < deadline, "{} sockets stay", left());
        store.wait(session, Arc::<Vec<Claim>>::default()).await.unwrap();
    }
    assert!(sockets.join("alive").exists());
    drop((alive, store));
}

#[tokio::test]
async fn fleets_in_one_file_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let (red, blue) = (open(&path, "red", true), open(&path, "blue", true));
    let session = SessionId::random();
    for store in [&red, &blue] {
        ask(store, join(session)).await.unwrap();
        ask(store, submit(session, 1, "a")).await.unwrap();
    }
    ask(&red, Destroy).await.unwrap();
    assert!(ask(&red, TakeSurvey).await.unwrap().queues.is_empty());
    let recounted = ask(&blue, Recount { max_hold_ms: 0 }).await.unwrap();
    assert_eq!(recounted.queues.len(), 1);
    assert!(recounted.queues.iter().all(|queue| queue.balance() && queue.ready.count == 2));
    assert_eq!(ask(&blue, claim(session, 1, "a")).await.unwrap().spans.len(), 1);
}

#[tokio::test]
async fn a_refused_request_leaves_the_others_of_its_group_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("x.db"), "baton", true);
    let session = SessionId::random();
    // Handed in before the file is even open, so that they go as one group.
    let first = store.call(join(session).request());
    let calls = [1, 5, 2, 3].map(|no| store.call(submit(session, no, "a").request()));
    first.await.unwrap();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await);
    }
    let stored = |first| Ok(Answer::Submit(Submitted { submissions: vec![SubmissionVerdict::Stored { first }] }));
    let refused = Err(StoreError::Refused(Refusal::OutOfTurn { last: 1 }));
    assert_eq!(answers, [stored(1), refused, stored(3), stored(5)]);
}

#[tokio::test]
async fn a_call_whose_caller_went_away_still_counts() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("x.db"), "baton", true);
    let session = SessionId::random();
    ask(&store, join(session)).await.unwrap();
    drop(store.call(submit(session, 1, "a").request()));
    ask(&store, submit(session, 2, "a")).await.unwrap();
    assert_eq!(ask(&store, TakeSurvey).await.unwrap().queues[0].pushed, 4);
}
