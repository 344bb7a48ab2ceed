//! Bodies that are missing: their messages become errors with that reason, and hold up nobody.

use baton::store::{Disposal, Lacking, Recount, Refusal, Rest, message::Outcome};

use super::scene::{Scene, dead, queue, range, ranges, run, spans};

/// Why such a message is an error.
const MISSING: &str = "its body is missing from the store";

/// The queue goes on, the audit tells, and what cannot run is not put back.
pub async fn a_message_without_its_body_is_buried_and_the_next_is_given(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 2).await;
    scene.fill(node, 3).await;
    scene.subject.lose_parcel(&queue(), 1).await;
    let recounted = scene.ask(Recount { max_hold_ms: 10_000 }).await.unwrap();
    assert_eq!(recounted.queues[0].lacking, Lacking { count: 2, first: Some(1) });
    assert!(!recounted.queues[0].balance());

    let (claim_no, given) = scene.claim(node, 10).await;
    assert_eq!(ranges(&given), [range(3, 3)]);
    let books = scene.books().await;
    assert_eq!((books.ready, books.in_flight, books.failed), (0, 3, 2));
    let errors = scene.peek(0, 9).await;
    let told: Vec<_> = errors.iter().map(|it| (it.id.0, it.error.as_str(), it.body.len(), it.attempts)).collect();
    assert_eq!(told, [(1, MISSING, 0, 0), (2, MISSING, 0, 0)]);
    assert_eq!(errors[0].node, "host/7");
    scene.settle(node, vec![run(claim_no, range(3, 3), Outcome::DONE)]).await;
    assert_eq!(scene.books().await.bytes, 0, "an empty queue holds nothing");
    scene.balanced().await;

    scene.drain(node).await;
    let requeue = scene.a_dispose(node, &[1, 2], Disposal::Requeue);
    assert_eq!(scene.ask(requeue).await.unwrap().count, 0, "they stay where they are");
    assert_eq!(scene.books().await.failed, 2);
    let drain = scene.a_dispose(node, &[1, 2], Disposal::Remove);
    assert_eq!(scene.ask(drain).await.unwrap().count, 2);
}

/// Whatever becomes of a claimed message whose body went, it is counted once.
pub async fn a_claimed_message_whose_body_went_is_settled_or_buried(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 4).await;
    let claim = scene.a_claim(node, 10);
    let claim_no = claim.claim_no;
    assert_eq!(ranges(&spans(scene.ask(claim.clone()).await.unwrap())), [range(1, 4)]);
    scene.subject.lose_parcel(&queue(), 1).await;
    let runs = vec![
        run(claim_no, range(1, 1), Outcome::Retry { after_ms: 0, error: String::new() }),
        run(claim_no, range(2, 1), dead("no")),
        run(claim_no, range(3, 1), Outcome::DONE),
    ];
    scene.settle(node, runs).await;
    let again = scene.ask(claim.clone()).await.unwrap();
    assert_eq!((again.spans.len(), again.rest), (0, Rest::More));
    assert_eq!(scene.refusal(claim).await, Refusal::Spent { claim_no });
    let errors = scene.peek(0, 9).await;
    let told: Vec<_> = errors.iter().map(|it| (it.id.0, it.error.as_str(), it.body.len(), it.attempts)).collect();
    assert_eq!(told, [(1, MISSING, 0, 1), (2, "no", 0, 1), (4, MISSING, 0, 0)]);
    let books = scene.books().await;
    assert_eq!((books.done, books.failed, books.in_flight, books.bytes), (1, 3, 0, 0));
}

/// A large parcel that is missing does not hold the store up: one claim buries a part of it.
pub async fn a_claim_buries_so_many_and_no_more(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 2_500).await;
    scene.fill(node, 1).await;
    scene.subject.lose_parcel(&queue(), 1).await;
    for buried in [1_024, 2_048] {
        let claim = scene.a_claim(node, 4_000);
        let claimed = scene.ask(claim.clone()).await.unwrap();
        assert_eq!((claimed.spans.len(), claimed.rest), (0, Rest::More));
        assert_eq!(scene.books().await.failed, buried);
        scene.balanced_but_for_bodies().await;
    }
    let (_, given) = scene.claim(node, 4_000).await;
    assert_eq!(ranges(&given), [range(2_501, 1)]);
    assert_eq!(scene.books().await.failed, 2_500);
}
