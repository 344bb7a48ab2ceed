//! Settles: tokens, outcomes and their effects.

use baton::{
    MessageId,
    store::{
        RESULT_TTL_MS, ReadResult, Refusal, Settle,
        message::{Mask, Outcome, Run, Submission},
    },
};
use bytes::Bytes;

use super::scene::{Scene, dead, keyed, name, parcel, queue, range, ranges, run, spans, submission};

/// Any part of a claim can be settled, in any order, until nothing is left.
pub async fn settles_take_ranges_and_masks(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 6).await;
    scene.fill(node, 6).await;
    let claim = scene.a_claim(node, 12);
    scene.ask(claim.clone()).await.unwrap();
    let mut mask = Mask::new(1);
    for id in [1, 2, 4, 7, 12] {
        mask.set(id);
    }
    scene.settle(node, mask.ranges().into_iter().map(|range| run(1, range, Outcome::DONE)).collect()).await;
    let books = scene.books().await;
    assert_eq!((books.in_flight, books.done, books.done_sum.value()), (7, 5, 1 + 2 + 4 + 7 + 12));
    // A run may span the spans of its claim.
    scene.settle(node, vec![run(1, range(5, 2), Outcome::DONE), run(1, range(8, 4), Outcome::DONE)]).await;
    let left = spans(scene.ask(claim.clone()).await.unwrap());
    assert_eq!(ranges(&left), [range(3, 1)]);
    scene.balanced().await;
    scene.settle(node, vec![run(1, range(3, 1), Outcome::DONE)]).await;
    assert_eq!(scene.refusal(claim).await, Refusal::Spent { claim_no: 1 });
    assert_eq!(scene.books().await.bytes, 0);
}

/// The next executes, the last is answered again, all else is refused.
pub async fn settles_are_serial_and_repeat_their_answers(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 9).await;
    scene.claim(node, 9).await;
    let settle = scene.a_settle(node, vec![run(1, range(1, 3), Outcome::DONE), run(1, range(30, 1), Outcome::DONE)]);
    let early = Settle { settle_no: 2, ..settle.clone() };
    assert_eq!(scene.refusal(early).await, Refusal::OutOfTurn { last: 0 });
    let answer = scene.ask(settle.clone()).await.unwrap();
    assert_eq!(answer.refused, [(queue(), 1, range(30, 1))]);
    assert_eq!(scene.ask(settle.clone()).await.unwrap(), answer);
    assert_eq!((scene.books().await.done, scene.books().await.stale_settles), (3, 1), "not counted twice");
    scene.settle(node, vec![run(1, range(4, 1), Outcome::DONE)]).await;
    assert_eq!(scene.refusal(settle.clone()).await, Refusal::OutOfTurn { last: 2 }, "a late copy");
    assert_eq!(scene.refusal(Settle { settle_no: 0, ..settle }).await, Refusal::OutOfTurn { last: 2 });
}

/// One wrong run does not spoil the others, and none of its messages is touched.
pub async fn a_bad_run_is_refused_alone(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 9).await;
    scene.claim(node, 4).await;
    scene.claim(node, 4).await;
    let bad = [
        run(1, range(3, 3), Outcome::DONE),
        run(2, range(1, 1), Outcome::DONE),
        run(7, range(1, 1), Outcome::DONE),
        Run { queue: name("other"), ..run(1, range(1, 1), Outcome::DONE) },
        run(1, range(9, 1), dead("not claimed")),
    ];
    let mut runs = bad.to_vec();
    runs.insert(2, run(1, range(2, 2), Outcome::DONE));
    runs.push(run(1, range(2, 1), Outcome::DONE));
    let settle = scene.a_settle(node, runs);
    let refused: Vec<_> = bad
        .iter()
        .chain([&run(1, range(2, 1), Outcome::DONE)])
        .map(|run| (run.queue.clone(), run.claim_no, run.range))
        .collect();
    assert_eq!(scene.ask(settle).await.unwrap().refused, refused);
    let books = scene.books().await;
    assert_eq!((books.done, books.in_flight, books.stale_settles), (2, 6, 3 + 1 + 1 + 1 + 1));
}

/// A worker that was paused past its lease finds its work given away.
pub async fn a_late_token_is_refused_and_counted(scene: &mut Scene) {
    let (slow, other) = (scene.node().await, scene.node().await);
    scene.fill(other, 3).await;
    scene.claim(slow, 3).await;
    scene.lose(other, slow).await;
    let late = scene.a_settle(slow, vec![run(1, range(1, 3), Outcome::DONE)]);
    assert_eq!(scene.refusal(late.clone()).await, Refusal::Stale);
    assert_eq!((scene.books().await.ready, scene.books().await.stale_settles), (3, 3));
    assert_eq!(scene.finish(other, 3, Outcome::DONE).await, [range(1, 3)]);
    // Of whatever outcome and number, and of queues that there are.
    let result = Outcome::Done { result: Some(Bytes::from_static(b"7")), follow_ups: vec![submission(parcel(1))] };
    let retry = Outcome::Retry { after_ms: 1, error: "again".to_owned() };
    let unknown = Run { queue: name("unknown"), ..run(1, range(1, 1), Outcome::DONE) };
    let outcomes = [result, retry, dead("no"), Outcome::Back];
    let runs = outcomes.into_iter().map(|outcome| run(1, range(1, 1), outcome)).chain([unknown]).collect();
    assert_eq!(scene.refusal(Settle { settle_no: 0, runs, ..late }).await, Refusal::Stale);
    let books = scene.books().await;
    assert_eq!((books.done, books.stale_settles), (3, 3 + 4));
    scene.balanced().await;
}

/// A token belongs to its session.
pub async fn another_session_cannot_settle(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    scene.fill(one, 3).await;
    scene.claim(one, 3).await;
    let theft = scene.a_settle(other, vec![run(1, range(1, 3), Outcome::DONE)]);
    assert_eq!(scene.ask(theft).await.unwrap().refused, [(queue(), 1, range(1, 3))]);
    scene.settle(one, vec![run(1, range(1, 3), Outcome::DONE)]).await;
}

/// By (due, id), before what is ready, with the attempt counted.
pub async fn retried_messages_come_back_when_due(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 6).await;
    scene.claim(node, 4).await;
    let retry = |after_ms| Outcome::Retry { after_ms, error: "again".to_owned() };
    scene.settle(node, vec![run(1, range(3, 2), retry(200)), run(1, range(1, 2), retry(200))]).await;
    let books = scene.books().await;
    assert_eq!((books.delayed, books.in_flight, books.ready), (4, 0, 2));
    scene.subject.pass(199).await;
    assert_eq!(scene.claim(node, 1).await.1[0].0.range, range(5, 1));
    scene.subject.pass(1).await;
    let (claim_no, claimed) = scene.claim(node, 4).await;
    assert_eq!(ranges(&claimed), [range(1, 1), range(2, 1), range(3, 1), range(4, 1)]);
    let bodies: Vec<_> = claimed.iter().map(|(_, parcel)| parcel.body(0).unwrap()).collect();
    assert_eq!(bodies, ["0", "1", "2", "3"]);
    assert!(claimed.iter().all(|(span, _)| (span.attempts, span.crashes) == (1, 0)));
    scene.settle(node, vec![run(claim_no, range(1, 1), retry(0)), run(claim_no, range(2, 3), Outcome::DONE)]).await;
    let (_, claimed) = scene.claim(node, 1).await;
    assert_eq!((claimed[0].0.range, claimed[0].0.attempts), (range(1, 1), 2));
}

/// In the order of ids, whatever the order of the runs.
pub async fn back_goes_to_the_front_in_order(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 8).await;
    scene.claim(node, 3).await;
    scene.claim(node, 3).await;
    let runs = [(2, range(4, 3)), (1, range(3, 1)), (1, range(1, 1))];
    scene.settle(node, runs.map(|(claim_no, range)| run(claim_no, range, Outcome::Back)).to_vec()).await;
    let (_, claimed) = scene.claim(node, 9).await;
    assert_eq!(ranges(&claimed), [range(1, 1), range(3, 1), range(4, 3), range(7, 2)]);
    assert!(claimed.iter().all(|(span, _)| (span.attempts, span.crashes) == (0, 0)));
}

/// Both exist if and only if the settle counts.
pub async fn results_and_follow_ups_commit_with_the_settle(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 2).await;
    scene.claim(node, 2).await;
    let next = Submission { queue: name("next"), ..submission(parcel(2)) };
    let done = |result: &'static str, follow_ups| Outcome::Done {
        result: Some(Bytes::from_static(result.as_bytes())),
        follow_ups,
    };
    let bad = run(1, range(9, 1), done("0", vec![next.clone()]));
    let good = run(1, range(2, 1), done("{\"ok\":1}", vec![next, keyed("k", "1"), keyed("k", "1")]));
    let settle = scene.a_settle(node, vec![bad, good]);
    scene.ask(settle.clone()).await.unwrap();
    scene.ask(settle).await.unwrap();
    let pushed: Vec<u64> = scene.survey().await.queues.iter().map(|books| books.pushed).collect();
    assert_eq!(pushed, [2, 3], "two to `next`, one more here under its key");
    let result = |id| ReadResult { queue: queue(), id: MessageId(id) };
    assert_eq!(scene.ask(result(2)).await.unwrap(), Some(Bytes::from_static(b"{\"ok\":1}")));
    assert_eq!(scene.ask(result(9)).await.unwrap(), None);
    scene.subject.pass(RESULT_TTL_MS).await;
    assert_eq!(scene.ask(result(2)).await.unwrap(), None);
}

/// At the bound each result makes room for itself, and what is over it alone is not kept.
pub async fn results_take_so_much_room_and_the_oldest_go(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 60).await;
    let (claim_no, _) = scene.claim(node, 60).await;
    let room = |results: u64, bytes: u64| results * 256 + bytes;
    let settle = async |scene: &mut Scene, id: u64, bytes: usize, max_results: u64| {
        let result = Some(Bytes::from(vec![b'1'; bytes]));
        let outcome = Outcome::Done { result, follow_ups: Vec::new() };
        let settle = Settle { max_results, ..scene.a_settle(node, vec![run(claim_no, range(id, 1), outcome)]) };
        assert_eq!(scene.ask(settle).await.unwrap().refused, []);
        scene.subject.pass(1).await;
    };
    let kept = async |scene: &Scene| {
        let mut kept = Vec::new();
        for id in 1..=60 {
            let result = scene.ask(ReadResult { queue: queue(), id: MessageId(id) }).await.unwrap();
            kept.extend(result.map(|result| (id, result.len())));
        }
        kept
    };
    for id in [3, 1, 2] {
        settle(scene, id, 10, room(3, 30)).await;
    }
    assert_eq!(kept(scene).await, [(1, 10), (2, 10), (3, 10)]);
    settle(scene, 4, 10, room(3, 30)).await;
    assert_eq!(kept(scene).await, [(1, 10), (2, 10), (4, 10)], "the oldest goes, not the lowest");
    settle(scene, 5, 11, room(3, 30)).await;
    assert_eq!(kept(scene).await, [(4, 10), (5, 11)]);
    settle(scene, 6, 300, room(1, 299)).await;
    assert_eq!(kept(scene).await, [(4, 10), (5, 11)], "too large for the bound, and in nobody's way");
    // Many short ones make room for a long one at once, by no more than its own length asks for.
    for id in 7..=50 {
        settle(scene, id, 0, room(46, 21)).await;
    }
    assert_eq!(kept(scene).await.len(), 46);
    settle(scene, 51, 5_000, room(46, 21)).await;
    let left = kept(scene).await;
    assert_eq!((left.first(), left.last(), left.len()), (Some(&(26, 0)), Some(&(51, 5_000)), 26));
    // A bound that was lowered is come down to in a few steps.
    settle(scene, 52, 0, room(2, 0)).await;
    settle(scene, 53, 0, room(2, 0)).await;
    assert_eq!(kept(scene).await, [(52, 0), (53, 0)]);
    scene.subject.pass(RESULT_TTL_MS).await;
    settle(scene, 54, 0, room(1, 0)).await;
    assert_eq!(kept(scene).await, [(54, 0)]);
}

/// A settle is never refused for lack of room.
pub async fn follow_ups_pass_a_full_queue(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 50).await;
    let next = baton::store::Submit { max_queue_bytes: 1, ..scene.a_submit(node, vec![submission(parcel(1))]) };
    assert_eq!(scene.ask(next).await.unwrap().submissions, [baton::store::SubmissionVerdict::Full]);
    let outcome = Outcome::Done { result: None, follow_ups: vec![submission(parcel(3))] };
    scene.finish(node, 1, outcome).await;
    assert_eq!(scene.books().await.pushed, 53);
}
