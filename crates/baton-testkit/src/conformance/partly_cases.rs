//! Parcels that go message by message: what is left of them counts, and nothing else.

use baton::{
    SessionId,
    store::{
        Leave, Push,
        message::{Body, Fields, Outcome, Parcel, ParcelBuilder},
    },
};

use super::scene::{Scene, dead, parcel, queue, range, ranges, run, submission};

/// Messages of a parcel in these cases.
const MANY: u32 = 256;
/// Bytes of each of their bodies: too long together to travel in a claim's answer.
const LENGTH: usize = 100;

/// A parcel of many messages, with headers on some if `headed`.
fn many(headed: bool) -> Parcel {
    let field = |tag, value: &str| Fields::default().with(tag, Some(value.as_bytes())).unwrap();
    let mut builder = ParcelBuilder::default();
    if headed {
        builder = builder.shared(field(77, "all"));
    }
    for nth in 0..MANY {
        let own = if headed && nth.is_multiple_of(2) { field(201, &nth.to_string()) } else { Fields::default() };
        builder.add_with(&own, Body::new(format!("{nth:<LENGTH$}").as_bytes()).unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

/// Stores such a parcel and claims all of it; the first id and the number of the claim.
async fn claimed(scene: &mut Scene, node: SessionId, parcel: Parcel) -> (u64, u64) {
    let submit = scene.a_submit(node, vec![submission(parcel)]);
    scene.ask(submit).await.unwrap();
    let (claim_no, given) = scene.claim(node, MANY).await;
    (given[0].0.range.first, claim_no)
}

/// By what each of them takes, whatever becomes of it, and in any order.
pub async fn bytes_fall_with_each_message_that_leaves(scene: &mut Scene) {
    let node = scene.node().await;
    for headed in [false, true] {
        let parcel = many(headed);
        let (first, claim_no) = claimed(scene, node, parcel.clone()).await;
        let mut bytes = scene.books().await.bytes;
        assert_eq!(bytes, parcel.bytes().len() as u64);
        for (start, len) in [(7, 1), (0, 1), (100, 90), (1, 6), (40, 33), (255, 1), (8, 32), (190, 65), (73, 27)] {
            let whole = parcel.cut(start, len).unwrap();
            let head = if start == 0 { 0 } else { whole.bytes().len() - whole.weight() - 4 * len as usize };
            let shared = if headed && start > 0 { 2 + 3 + 3 } else { 0 };
            let outcome = if start == 7 { dead("no") } else { Outcome::DONE };
            scene.settle(node, vec![run(claim_no, range(first + u64::from(start), len), outcome)]).await;
            let share = (whole.bytes().len() - head - shared) as u64;
            assert_eq!(scene.books().await.bytes, bytes - share, "{start} {len} {headed}");
            bytes -= share;
            scene.balanced().await;
        }
        assert_eq!(bytes, 0);
    }
}

/// Nothing keeps a parcel alive but messages that still need it.
pub async fn a_parcel_goes_with_its_last_message(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 4).await;
    let whole = scene.books().await.bytes;
    scene.finish(node, 1, Outcome::DONE).await;
    scene.finish(node, 1, dead("no")).await;
    let single = parcel(1).bytes().len() as u64;
    // An end and a body of one byte; the first also for what stands before.
    let one = 5;
    assert_eq!(scene.books().await.bytes, whole - single - one);
    assert_eq!(scene.books().await.bytes, 2 * one);
    scene.finish(node, 1, Outcome::Retry { after_ms: 0, error: String::new() }).await;
    assert_eq!(scene.books().await.bytes, one + single, "a retried message takes a copy along");
    let (claim_no, _) = scene.claim(node, 2).await;
    assert!(scene.subject.stored_bytes(&queue(), 1).await > 0);
    scene.settle(node, vec![run(claim_no, range(4, 1), Outcome::DONE)]).await;
    assert_eq!(scene.books().await.bytes, single);
    assert_eq!(scene.subject.stored_bytes(&queue(), 1).await, 0);
    scene.settle(node, vec![run(claim_no, range(3, 1), Outcome::DONE)]).await;
    assert_eq!(scene.books().await.bytes, 0);
}

/// A bound of three parcels, and twenty that are done but for one message each.
pub async fn a_straggler_in_each_parcel_holds_up_no_source(scene: &mut Scene) {
    let node = scene.node().await;
    let mut taken = scene.take(node).await;
    let bound = 3 * many(false).bytes().len() as u64;
    let mut slow = Vec::new();
    for nth in 0..20_u64 {
        let push = Push { parcels: vec![many(false)], max_queue_bytes: bound, ..Scene::a_push(node, &taken, MANY) };
        (taken.batch_no, taken.cursor) = (push.batch_no, push.to.clone());
        scene.push(push).await.unwrap();
        let (claim_no, given) = scene.claim(node, MANY).await;
        let (first, at) = (given[0].0.range.first, nth * 13 % u64::from(MANY));
        let before = u32::try_from(at).unwrap();
        let quick = [(first, before), (first + at + 1, MANY - before - 1)];
        let quick = quick.into_iter().filter(|(_, len)| *len > 0);
        let runs = quick.map(|(first, len)| run(claim_no, range(first, len), Outcome::DONE)).collect();
        scene.settle(node, runs).await;
        slow.push((claim_no, range(first + at, 1)));
    }
    let books = scene.books().await;
    assert_eq!((books.done, books.in_flight), (20 * u64::from(MANY - 1), 20));
    assert!(books.bytes < bound / 9, "{} of {bound}", books.bytes);
    scene.balanced().await;
    scene.settle(node, slow.iter().map(|(claim_no, range)| run(*claim_no, *range, Outcome::DONE)).collect()).await;
    assert_eq!(scene.books().await.bytes, 0);
}

/// Memory follows: once, when an eighth is left, whoever reports it.
pub async fn a_parcel_with_an_eighth_left_is_stored_without_the_others(scene: &mut Scene) {
    let node = scene.node().await;
    for headed in [false, true] {
        let (first, claim_no) = claimed(scene, node, many(headed)).await;
        let whole = scene.subject.stored_bytes(&queue(), first).await;
        // All but 33, every seventh among them.
        let left: Vec<u32> = (0..MANY).filter(|nth| nth % 7 == 3).take(33).collect();
        let gone = (0..MANY).filter(|nth| !left.contains(nth)).map(|nth| range(first + u64::from(nth), 1));
        let runs = gone.map(|range| run(claim_no, range, Outcome::DONE)).collect();
        scene.settle(node, runs).await;
        assert_eq!(scene.subject.stored_bytes(&queue(), first).await, whole);
        let id = |nth: u32| first + u64::from(nth);
        scene.settle(node, vec![run(claim_no, range(id(left[0]), 1), Outcome::DONE)]).await;
        let thinned = scene.subject.stored_bytes(&queue(), first).await;
        assert!(thinned * 4 < whole, "{thinned} of {whole}");
        scene.balanced().await;
        let bytes = scene.books().await.bytes;
        scene.settle(node, vec![run(claim_no, range(id(left[1]), 1), Outcome::DONE)]).await;
        assert!(scene.books().await.bytes < bytes);
        assert_eq!(scene.subject.stored_bytes(&queue(), first).await, thinned, "once");
        let rest = left[2..].iter().map(|nth| run(claim_no, range(id(*nth), 1), Outcome::DONE)).collect();
        scene.settle(node, rest).await;
        assert_eq!(scene.subject.stored_bytes(&queue(), first).await, 0);
        assert_eq!(scene.books().await.bytes, 0);
    }
}

/// Those left have their bodies and headers, in whatever way they are asked for.
pub async fn what_is_left_of_a_parcel_is_claimed_retried_and_buried_as_ever(scene: &mut Scene) {
    for headed in [false, true] {
        let node = scene.node().await;
        let parcel = many(headed);
        let (first, claim_no) = claimed(scene, node, parcel.clone()).await;
        let id = |nth: u32| first + u64::from(nth);
        let runs = [(0, 10), (14, 226), (242, 14)].map(|(nth, len)| run(claim_no, range(id(nth), len), Outcome::DONE));
        scene.settle(node, runs.to_vec()).await;
        scene.ask(Leave { session: node }).await.unwrap();
        let node = scene.node().await;
        let (claim_no, given) = scene.claim(node, MANY).await;
        assert_eq!(ranges(&given), [range(id(10), 4), range(id(240), 2)]);
        for (span, given) in &given {
            let start = u32::try_from(span.range.first - first).unwrap();
            for nth in 0..span.range.len {
                assert_eq!(given.body(nth), parcel.body(start + nth));
                assert_eq!(given.headers(nth), parcel.headers(start + nth));
            }
        }
        let retry = Outcome::Retry { after_ms: 0, error: String::new() };
        let runs = vec![
            run(claim_no, range(id(10), 2), retry),
            run(claim_no, range(id(12), 1), dead("no")),
            run(claim_no, range(id(13), 1), Outcome::Back),
            run(claim_no, range(id(240), 2), Outcome::DONE),
        ];
        scene.settle(node, runs).await;
        scene.balanced().await;
        let error = scene.peek(0, 9).await.pop().unwrap();
        assert_eq!((error.body, error.headers), (parcel.body(12).unwrap(), parcel.headers(12)));
        let (claim_no, given) = scene.claim(node, MANY).await;
        assert_eq!(ranges(&given), [range(id(10), 1), range(id(11), 1), range(id(13), 1)]);
        assert_eq!(given[2].1.body(0), parcel.body(13));
        let runs = given.iter().map(|(span, _)| run(claim_no, span.range, Outcome::DONE)).collect();
        scene.settle(node, runs).await;
        assert_eq!(scene.books().await.bytes, 0);
        scene.ask(Leave { session: node }).await.unwrap();
    }
}
