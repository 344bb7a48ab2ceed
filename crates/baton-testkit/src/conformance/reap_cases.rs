//! Crashes: what a dead session leaves behind.

use baton::{
    SessionId,
    store::{Kind, Lost, Reaped, message::Outcome},
};

use super::scene::{LEASE, Scene, dead, queue, range, ranges, run};

/// Spans of at most 16, at the front, in the order of ids.
pub async fn losses_split_spans_in_id_order(scene: &mut Scene) {
    let (lost, other) = (scene.node().await, scene.node().await);
    scene.fill(other, 20).await;
    scene.fill(other, 40).await;
    scene.claim(lost, 10).await;
    scene.claim(lost, 30).await;
    let (claim_no, _) = scene.claim(lost, 1).await;
    scene.settle(lost, vec![run(claim_no, range(41, 1), Outcome::DONE), run(2, range(15, 2), Outcome::DONE)]).await;
    assert_eq!(scene.lose(other, lost).await.counts(), Some((38, 0)));
    let (_, claimed) = scene.claim(other, 100).await;
    let want = [(1, 10), (11, 4), (17, 4), (21, 16), (37, 4), (42, 19)].map(|(first, len)| range(first, len));
    assert_eq!(ranges(&claimed), want);
    let crashes: Vec<u32> = claimed.iter().map(|(span, _)| span.crashes).collect();
    assert_eq!(crashes, [1, 1, 1, 1, 1, 0]);
}

/// The answer says who was lost, how long it was silent, and how many messages went back to which queue.
pub async fn a_reap_reports_who_was_lost_and_what_went_back(scene: &mut Scene) {
    let (lost, other) = (scene.node().await, scene.node().await);
    scene.fill(other, 5).await;
    scene.claim(lost, 3).await;
    let Reaped::Taken(it) = scene.lose(other, lost).await else { panic!("it is past its lease") };
    // The fleet clock sees the time only as far as calls tell of it.
    let silent_ms = it.silent_ms.filter(|ms| (LEASE..=LEASE + 200).contains(ms));
    assert!(silent_ms.is_some(), "{it:?}");
    let back = [(queue(), 3)].into();
    assert_eq!(it, Lost { kind: Kind::Node, node: "host/7".to_owned(), silent_ms, back, failed: 0 });
}

/// After two crashes a message runs beside no other suspect.
pub async fn suspects_go_one_to_a_session(scene: &mut Scene) {
    let keeper = scene.node().await;
    scene.fill(keeper, 3).await;
    for _ in 0..2 {
        let lost = scene.node().await;
        scene.claim(lost, 3).await;
        scene.lose(keeper, lost).await;
    }
    scene.fill(keeper, 2).await;
    let (first, claimed) = scene.claim(keeper, 9).await;
    assert_eq!(ranges(&claimed), [range(1, 1), range(4, 2)], "one suspect, then what is ready");
    assert_eq!(scene.claim(keeper, 9).await.1, [], "no second while it holds the first");
    let other = scene.node().await;
    assert_eq!(ranges(&scene.claim(other, 1).await.1), [range(2, 1)]);
    scene.settle(keeper, vec![run(first, range(1, 1), Outcome::Back)]).await;
    assert_eq!(ranges(&scene.claim(other, 9).await.1), [], "the other still has one");
    assert_eq!(ranges(&scene.claim(keeper, 9).await.1), [range(1, 1)], "a suspect goes back among the suspects");
}

/// Whoever runs it dies; its 511 neighbours are done all the same.
pub async fn a_poison_message_ends_as_one_error(scene: &mut Scene) {
    const POISON: u64 = 300;
    let keeper = scene.node().await;
    scene.fill(keeper, 512).await;
    for _ in 0..600 {
        let worker = scene.node().await;
        let (claim_no, claimed) = scene.claim(worker, 512).await;
        if claimed.is_empty() {
            scene.leave(worker).await;
            break;
        }
        let runs = claimed.iter().filter(|(span, _)| span.range.overlap(range(POISON, 1)).is_none());
        let runs: Vec<_> = runs.map(|(span, _)| run(claim_no, span.range, Outcome::DONE)).collect();
        if runs.len() < claimed.len() {
            // It dies of the poison before it has reported anything.
            scene.lose(keeper, worker).await;
        } else {
            scene.settle(worker, runs).await;
            scene.leave(worker).await;
        }
    }
    let books = scene.books().await;
    assert_eq!((books.done, books.failed, books.ready, books.in_flight), (511, 1, 0, 0));
    let errors = scene.peek(0, 10).await;
    assert_eq!((errors[0].id.0, errors[0].crashes, errors[0].attempts), (POISON, 4, 0));
    assert!(errors[0].error.contains("lost 4 times"), "{}", errors[0].error);
    assert_eq!(errors[0].body, (POISON - 1).to_string());
}

/// A crash is no attempt, and an attempt is no crash.
pub async fn losses_are_counted_apart_from_attempts(scene: &mut Scene) {
    let keeper = scene.node().await;
    scene.fill(keeper, 1).await;
    lose_once(scene, keeper).await;
    scene.finish(keeper, 1, Outcome::Retry { after_ms: 0, error: String::new() }).await;
    lose_once(scene, keeper).await;
    let (claim_no, claimed) = scene.claim(keeper, 1).await;
    assert_eq!((claimed[0].0.attempts, claimed[0].0.crashes), (1, 1), "an attempt that ended forgives earlier crashes");
    scene.settle(keeper, vec![run(claim_no, range(1, 1), dead("no"))]).await;
    let errors = scene.peek(0, 9).await;
    assert_eq!((errors[0].attempts, errors[0].crashes), (2, 1));
    assert_eq!((errors[0].node.as_str(), errors[0].at), ("host/7", scene.subject.now()));
}

async fn lose_once(scene: &mut Scene, keeper: SessionId) {
    let lost = scene.node().await;
    assert_eq!(scene.claim(lost, 1).await.1.len(), 1);
    scene.lose(keeper, lost).await;
}
