//! Waiting for work, in real time.

use std::time::{Duration, Instant};

use baton::store::{Answer, Claim, Claimed};

use super::scene::{Scene, lot, parcel};

/// Long before the wait would have ended by itself, also when the push came first.
pub async fn a_push_wakes_a_waiting_worker(scene: &mut Scene) {
    let node = scene.node().await;
    let store = scene.subject.store.clone();
    for round in 0..3 {
        let claim = scene.a_claim(node, 9);
        let worker = tokio::spawn({
            let store = store.clone();
            async move { store.claim_when_ready(claim, Duration::from_secs(60)).await }
        });
        let submit = scene.a_submit(node, vec![lot(parcel(1))]);
        scene.ask(submit).await.unwrap();
        let Answer::Claim(Claimed::Some { pieces, .. }) = worker.await.unwrap().unwrap() else {
            panic!("nothing was claimed in round {round}");
        };
        assert_eq!(pieces.len(), 1, "round {round}");
    }
}

/// A wait that nobody ends ends by itself, and its claim does not use its number.
pub async fn a_wait_ends_in_vain(scene: &mut Scene) {
    let node = scene.node().await;
    let claim = scene.a_claim(node, 9);
    let start = Instant::now();
    for limit in [Duration::from_millis(100), Duration::from_secs(3_600)] {
        let answer = scene.subject.store.claim_when_ready(claim.clone(), limit).await.unwrap();
        assert_eq!(answer, Answer::Claim(Claimed::Empty { next_due_ms: None }));
        assert!(start.elapsed() >= Duration::from_millis(50), "it returned at once, which makes workers spin");
    }
    let of_none = Claim { queues: Vec::new(), ..claim };
    let answer = scene.subject.store.claim_when_ready(of_none, Duration::from_millis(10)).await.unwrap();
    assert_eq!(answer, Answer::Claim(Claimed::Empty { next_due_ms: None }));
    assert!(start.elapsed() < Duration::from_secs(30));
}
