//! Waiting for work, in real time.

use std::time::{Duration, Instant};

use super::scene::{Scene, lot, parcel, queue};

/// Long before the wait would have ended by itself, also when the push came first.
pub async fn a_push_wakes_a_waiting_worker(scene: &mut Scene) {
    let node = scene.node().await;
    let store = scene.subject.store.clone();
    for round in 0..3 {
        let worker = tokio::spawn({
            let store = store.clone();
            async move { store.wait(vec![queue()], Duration::from_secs(60)).await }
        });
        let submit = scene.a_submit(node, vec![lot(parcel(1))]);
        scene.ask(submit).await.unwrap();
        worker.await.unwrap();
        assert_eq!(scene.claim(node, 9).await.1.len(), 1, "round {round}");
    }
}

/// A wait that nobody ends ends by itself.
pub async fn a_wait_ends_in_vain(scene: &mut Scene) {
    scene.node().await;
    let start = Instant::now();
    scene.subject.store.wait(vec![queue()], Duration::from_millis(100)).await;
    assert!(start.elapsed() >= Duration::from_millis(50), "it returned at once, which makes workers spin");
    scene.subject.store.wait(vec![queue()], Duration::from_secs(3_600)).await;
    assert!(start.elapsed() < Duration::from_secs(30));
}
