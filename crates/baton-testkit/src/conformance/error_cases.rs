//! Errors: messages that failed for good.

use baton::{
    SessionId,
    store::{Disposal, Dispose, Peek, Refusal, RemovalBegin, message::Outcome},
};

use super::scene::{Scene, dead, parcel, queue, range, ranges};

async fn some_errors(scene: &mut Scene, count: u32) -> SessionId {
    let node = scene.node().await;
    scene.fill(node, count).await;
    for nth in 0..count {
        scene.finish(node, 1, dead(&format!("reason {nth}"))).await;
    }
    node
}

/// Seen first, removed after; what comes meanwhile is left for the next time.
pub async fn errors_are_drained_in_two_phases(scene: &mut Scene) {
    let node = some_errors(scene, 5).await;
    let drainer = scene.node().await;
    let upto = scene.drain(drainer).await;
    assert_eq!(upto, 5);
    scene.fill(node, 1).await;
    scene.finish(node, 1, dead("later")).await;
    let page = scene.ask(Peek { queue: queue(), after: 0, upto, limit: 3, max_bytes: 1 << 20 }).await.unwrap().errors;
    let ids: Vec<u64> = page.iter().map(|error| error.id.0).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!((page[1].error.as_str(), &page[1].body[..], page[1].attempts), ("reason 1", &b"1"[..], 1));
    let dispose = scene.a_dispose(drainer, &ids, Disposal::Remove);
    assert_eq!(scene.ask(dispose).await.unwrap().count, 3);
    let rest = Peek { queue: queue(), after: page[2].seq, upto, limit: 99, max_bytes: 1 << 20 };
    assert_eq!(scene.ask(rest).await.unwrap().errors.len(), 2);
    let books = scene.books().await;
    assert_eq!((books.failed, books.removed, books.removed_sum.value()), (3, 3, 6));
}

/// At each step of a drain the drainer dies, and the next one gets what was not removed.
pub async fn a_drainer_that_dies_loses_nothing(scene: &mut Scene) {
    let keeper = some_errors(scene, 4).await;
    let mut printed = std::collections::BTreeSet::new();
    for step in 0..3 {
        let drainer = scene.node().await;
        scene.drain(drainer).await;
        if step > 0 {
            printed.extend(scene.peek(0, 2).await.into_iter().map(|error| error.id.0));
        }
        if step > 1 {
            let dispose = scene.a_dispose(drainer, &[1, 2], Disposal::Remove);
            scene.ask(dispose).await.unwrap();
        }
        let refusal = scene.refusal(RemovalBegin { session: keeper, queue: queue() }).await;
        assert_eq!(refusal, Refusal::RemovalBusy { holder: drainer }, "alive until its lease is over");
        scene.lose(keeper, drainer).await;
        let late = scene.a_dispose(drainer, &[3, 4], Disposal::Remove);
        assert_eq!(scene.refusal(late).await, Refusal::Stale);
    }
    assert_eq!(scene.drain(keeper).await, 4);
    let left = scene.peek(0, 99).await;
    printed.extend(left.iter().map(|error| error.id.0));
    assert_eq!(printed.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
    let dispose = scene.a_dispose(keeper, &[3, 4], Disposal::Remove);
    scene.ask(dispose).await.unwrap();
    assert_eq!((scene.books().await.failed, scene.books().await.removed), (0, 4));
}

/// Two would print everything twice and remove what the other has not shown.
pub async fn one_drainer_at_a_time(scene: &mut Scene) {
    let one = some_errors(scene, 2).await;
    let other = scene.node().await;
    scene.drain(one).await;
    scene.drain(one).await;
    let refusal = scene.refusal(RemovalBegin { session: other, queue: queue() }).await;
    assert_eq!(refusal, Refusal::RemovalBusy { holder: one });
    let dispose = scene.a_dispose(other, &[1], Disposal::Remove);
    assert_eq!(scene.refusal(dispose).await, Refusal::NotRemover);
    scene.leave(one).await;
    scene.drain(other).await;
}

/// The reply was lost, not the disposal.
pub async fn a_repeated_disposal_disposes_once(scene: &mut Scene) {
    let node = some_errors(scene, 3).await;
    scene.drain(node).await;
    let dispose = scene.a_dispose(node, &[1, 2, 77, 1], Disposal::Requeue);
    let early = Dispose { dispose_no: 2, ..dispose.clone() };
    assert_eq!(scene.refusal(early).await, Refusal::OutOfTurn { last: 0 });
    for _ in 0..2 {
        assert_eq!(scene.ask(dispose.clone()).await.unwrap().count, 2, "77 is unknown, and 1 is there once");
    }
    let next = scene.a_dispose(node, &[3], Disposal::Remove);
    scene.ask(next).await.unwrap();
    assert_eq!(scene.refusal(dispose).await, Refusal::OutOfTurn { last: 2 });
    let books = scene.books().await;
    assert_eq!((books.failed, books.requeued, books.removed), (0, 2, 1));
}

/// The same id, a clean history, behind all that waits.
pub async fn requeued_errors_run_again_under_their_ids(scene: &mut Scene) {
    let node = some_errors(scene, 2).await;
    scene.fill(node, 1).await;
    scene.drain(node).await;
    let dispose = scene.a_dispose(node, &[2], Disposal::Requeue);
    scene.ask(dispose).await.unwrap();
    let (claim_no, claimed) = scene.claim(node, 9).await;
    assert_eq!(ranges(&claimed), [range(3, 1), range(2, 1)]);
    assert_eq!((claimed[1].0.attempts, claimed[1].0.crashes), (0, 0));
    assert_eq!(claimed[1].1.body(0).unwrap(), "1");
    scene.settle(node, vec![super::scene::run(claim_no, range(2, 1), dead("again"))]).await;
    let errors = scene.peek(0, 9).await;
    assert_eq!(errors.iter().map(|error| (error.seq, error.id.0)).collect::<Vec<_>>(), [(1, 1), (3, 2)]);
    scene.settle(node, vec![super::scene::run(claim_no, range(3, 1), Outcome::DONE)]).await;
    let books = scene.books().await;
    assert_eq!((books.pushed, books.done, books.failed, books.requeued), (3, 1, 2, 1));
}

/// A page of large errors is short, and still one error long.
pub async fn pages_are_bounded_by_bytes_but_never_empty(scene: &mut Scene) {
    some_errors(scene, 3).await;
    let weight = "reason 0".len() as u64 + 1;
    assert_eq!(parcel(1).weight(), 1);
    for (max_bytes, want) in [(0, 1), (weight, 1), (2 * weight - 1, 1), (2 * weight, 2), (1_000, 3)] {
        let peek = Peek { queue: queue(), after: 0, upto: 9, limit: 9, max_bytes };
        assert_eq!(scene.ask(peek).await.unwrap().errors.len(), want, "within {max_bytes} bytes");
    }
}
