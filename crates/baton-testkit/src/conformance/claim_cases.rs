//! Claims: order, bounds and numbers.

use baton::store::{
    CLAIM_WINDOW, Claim, Order, Refusal,
    message::{Body, Outcome, Parcel, ParcelBuilder, Submission},
};

use super::scene::{Scene, name, nothing, parcel, queue, range, ranges, run, spans, submission};

/// One claim, one queue; its numbers are its own.
pub async fn claims_of_two_queues_are_separate(scene: &mut Scene) {
    let node = scene.node().await;
    let other = || name("other");
    let submit =
        scene.a_submit(node, vec![submission(parcel(2)), Submission { queue: other(), ..submission(parcel(3)) }]);
    scene.ask(submit).await.unwrap();
    let claim = scene.a_claim(node, 1);
    let of_other = Claim { queue: other(), ..claim.clone() };
    assert_eq!(ranges(&spans(scene.ask(claim.clone()).await.unwrap())), [range(1, 1)]);
    assert_eq!(ranges(&spans(scene.ask(of_other.clone()).await.unwrap())), [range(1, 1)], "the same number, not spent");
    assert_eq!(scene.beat(node).await.unwrap().claims, [(other(), 1), (queue(), 1)]);
    scene.settle(node, vec![run(1, range(1, 1), Outcome::DONE)]).await;
    assert_eq!(scene.refusal(claim.clone()).await, Refusal::Spent { claim_no: 1 });
    let again = scene.ask(of_other).await.unwrap();
    assert_eq!((&again.queue, ranges(&again.spans)), (&other(), vec![range(1, 1)]), "what is in flight there stays");
    // A hundred claims of one queue while the first number of another has not been used.
    for claim_no in 2..=100 {
        let claim = Claim { queue: other(), claim_no, ..claim.clone() };
        assert_eq!(spans(scene.ask(claim.clone()).await.unwrap()).len(), usize::from(claim_no < 4), "{claim_no}");
        if claim_no >= 4 {
            let submit = scene.a_submit(node, vec![Submission { queue: other(), ..submission(parcel(1)) }]);
            scene.ask(submit).await.unwrap();
            assert_eq!(spans(scene.ask(claim).await.unwrap()).len(), 1);
        }
    }
    assert_eq!(ranges(&spans(scene.ask(Claim { claim_no: 2, ..claim }).await.unwrap())), [range(2, 1)]);
}

/// A message larger than the budget is given alone rather than never.
pub async fn a_claim_is_bounded_by_bytes_but_never_empty(scene: &mut Scene) {
    let node = scene.node().await;
    let mut builder = ParcelBuilder::default();
    for body in ["1234567890", "1234567890", "1", "2", "3"] {
        builder.add(Body::new(body.as_bytes()).unwrap()).unwrap();
    }
    let submit = scene.a_submit(node, vec![submission(builder.finish().unwrap()), submission(parcel(2))]);
    scene.ask(submit).await.unwrap();
    for (max_bytes, want) in
        [(0, vec![range(1, 1)]), (12, vec![range(2, 3)]), (1, vec![range(5, 1)]), (2, vec![range(6, 2)])]
    {
        let claim = Claim { max_bytes, ..scene.a_claim(node, 10) };
        assert_eq!(ranges(&spans(scene.ask(claim).await.unwrap())), want, "with {max_bytes} bytes");
    }
    scene.fill(node, 1).await;
    scene.fill(node, 1).await;
    let claim = Claim { max_bytes: 1, ..scene.a_claim(node, 10) };
    assert_eq!(ranges(&spans(scene.ask(claim).await.unwrap())), [range(8, 1)], "the second would go over");
}

/// The reply was lost, or half of it is settled: the answer is what is held now.
pub async fn a_repeated_claim_gives_what_is_in_flight(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 4).await;
    scene.fill(node, 4).await;
    let claim = scene.a_claim(node, 6);
    let first = scene.ask(claim.clone()).await.unwrap();
    let wider = Claim { n: 100, ..claim.clone() };
    assert_eq!(scene.ask(wider).await.unwrap(), first);
    assert_eq!(scene.beat(node).await.unwrap().claims, [(queue(), 1)]);
    scene.settle(node, vec![run(1, range(2, 4), Outcome::DONE)]).await;
    let rest = spans(scene.ask(claim).await.unwrap());
    assert_eq!(ranges(&rest), [range(1, 1), range(6, 1)]);
    let bodies: Vec<_> = rest.iter().flat_map(|(_, parcel)| parcel.bodies().collect::<Vec<_>>()).collect();
    assert_eq!(bodies, ["0", "1"]);
}

/// Nothing is held under it, and it never holds anything again.
pub async fn a_settled_claim_number_is_spent(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 4).await;
    let claim = scene.a_claim(node, 2);
    scene.ask(claim.clone()).await.unwrap();
    scene.settle(node, vec![run(1, range(1, 2), Outcome::DONE)]).await;
    for _ in 0..2 {
        assert_eq!(scene.refusal(claim.clone()).await, Refusal::Spent { claim_no: 1 });
    }
    assert_eq!(scene.claim(node, 9).await.1.len(), 1);
}

/// A worker that finds nothing uses the same number for its next try.
pub async fn an_empty_claim_keeps_its_number(scene: &mut Scene) {
    let node = scene.node().await;
    let claim = scene.a_claim(node, 2);
    assert_eq!(scene.ask(claim.clone()).await.unwrap(), nothing(None));
    scene.fill(node, 1).await;
    assert_eq!(spans(scene.ask(claim).await.unwrap()).len(), 1);
}

/// Several claims are under way at once, and the network does not keep their order.
pub async fn claims_may_overtake_each_other(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 9).await;
    let claims: Vec<Claim> = (0..3).map(|_| scene.a_claim(node, 3)).collect();
    for (nth, first) in [(2, 1), (0, 4), (1, 7)] {
        let claimed = spans(scene.ask(claims[nth].clone()).await.unwrap());
        assert_eq!(ranges(&claimed), [range(first, 3)]);
    }
    assert_eq!(scene.beat(node).await.unwrap().claims, [(queue(), 1), (queue(), 2), (queue(), 3)]);
}

/// So the store remembers few unused numbers however long a session lives.
pub async fn claim_numbers_stay_within_the_window(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 9).await;
    let claim = scene.a_claim(node, 1);
    let far = Claim { claim_no: 1 + CLAIM_WINDOW, ..claim.clone() };
    assert_eq!(scene.refusal(far).await, Refusal::OutOfTurn { last: 0 });
    let last = Claim { claim_no: CLAIM_WINDOW, ..claim.clone() };
    assert_eq!(spans(scene.ask(last).await.unwrap()).len(), 1);
    let next = Claim { claim_no: 1 + CLAIM_WINDOW, ..claim.clone() };
    assert_eq!(scene.refusal(next.clone()).await, Refusal::OutOfTurn { last: CLAIM_WINDOW });
    scene.ask(claim).await.unwrap();
    assert_eq!(spans(scene.ask(next).await.unwrap()).len(), 1, "the lowest hole is filled");
}

/// Paused is paused for ready and delayed messages alike, until resumed.
pub async fn a_paused_queue_gives_nothing(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 2).await;
    scene.finish(node, 1, Outcome::Retry { after_ms: 0, error: String::new() }).await;
    scene.ask(Order::Pause(queue())).await.unwrap();
    assert!(scene.books().await.paused);
    let claim = scene.a_claim(node, 9);
    assert_eq!(scene.ask(claim.clone()).await.unwrap(), nothing(None));
    scene.ask(Order::Resume(queue())).await.unwrap();
    assert_eq!(ranges(&spans(scene.ask(claim).await.unwrap())), [range(1, 1), range(2, 1)]);
}

/// A worker sleeps until the next message is due, not longer.
pub async fn an_empty_claim_tells_when_to_come_back(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 2).await;
    scene.finish(node, 1, Outcome::Retry { after_ms: 700, error: String::new() }).await;
    scene.finish(node, 1, Outcome::Retry { after_ms: 300, error: String::new() }).await;
    scene.subject.pass(100).await;
    let claim = scene.a_claim(node, 9);
    assert_eq!(scene.ask(claim.clone()).await.unwrap(), nothing(Some(200)));
    scene.subject.pass(200).await;
    assert_eq!(ranges(&spans(scene.ask(claim).await.unwrap())), [range(2, 1)]);
}

/// However a parcel is cut, each message arrives with its own body.
pub async fn splitting_a_parcel_keeps_its_bodies(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 100).await;
    let mut bodies = Vec::new();
    for n in [1, 2, 30, 1, 66, 5] {
        let (_, claimed) = scene.claim(node, n).await;
        for (span, parcel) in &claimed {
            assert_eq!(span.range.len, parcel.len());
            assert_eq!(Parcel::parse(parcel.bytes().clone()).as_ref(), Ok(parcel));
            bodies.extend(parcel.bodies());
        }
    }
    let want: Vec<String> = (0..100).map(|body| body.to_string()).collect();
    assert_eq!(bodies, want);
}
