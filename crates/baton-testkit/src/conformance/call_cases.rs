//! Calls: how they begin and end, what joins them, and cancelling.

use baton::store::{
    CALL_TTL_MS, CallState, CallView, CancelCall, Cancelling, Claim, Destroy, Disposal, Emitted, FollowCall, ReadCall,
    ReadEvents, Refusal, Settle, SubmissionVerdict, UnfollowCall,
    message::{Calling, Outcome, Run, Submission},
};
use bytes::Bytes;

use super::{
    call_scene::{call_id, done, filed, joining, retry, stored, stored_under, told},
    scene::{LEASE, Scene, dead, keyed, name, parcel, range, run, spans, submission},
};

/// The last event is written by the settle that ends the last message, with its result.
pub async fn a_call_ends_with_its_last_message(scene: &mut Scene) {
    let node = scene.node().await;
    let call = scene.begin(node, None).await;
    assert_eq!(scene.state(&call).await, CallState::Ready);
    let held = scene.hold(node).await;
    assert_eq!(scene.state(&call).await, CallState::InFlight);
    assert_eq!(scene.ask(held.emit(1, vec![told("seen", "1"), told("seen", "2")])).await.unwrap(), Emitted::Kept);
    assert_eq!(
        scene.view(&call).await,
        CallView { state: CallState::InFlight, born: call.born.unwrap(), outcome: None, first: 1, next: 3 }
    );
    scene.end(&held, done("[3]")).await;
    let view = scene.view(&call).await;
    assert_eq!((view.state, view.outcome, view.next), (CallState::Done, Some(Bytes::from_static(b"[3]")), 4));
    assert_eq!(scene.events(&call, 1).await, [stored("seen", "1"), stored("seen", "2"), stored("end", "[3]")]);
    assert_eq!(scene.events(&call, 4).await, [] as [Bytes; 0]);
    // A call without anything to tell, and one that dies.
    let (silent, dies) = (scene.begin(node, None).await, scene.begin(node, None).await);
    scene.finish(node, 1, Outcome::DONE).await;
    assert_eq!(scene.events(&silent, 1).await, [stored("end", "")]);
    scene.finish(node, 1, dead("no \"good\"/")).await;
    assert_eq!(scene.events(&dies, 1).await, [stored("error", "no \"good\"/")]);
    assert_eq!(scene.view(&dies).await.outcome, Some(Bytes::from_static(b"no \"good\"/")));
    assert_eq!(scene.cancel(&dies).await, Cancelling::Ended);
    let books = scene.books().await;
    assert_eq!((books.done, books.failed, books.cancelled), (2, 1, 0));
}

/// A message that is no call costs and keeps nothing, and can tell nothing.
pub async fn a_plain_message_is_no_call(scene: &mut Scene) {
    let node = scene.node().await;
    let first = scene.fill(node, 1).await;
    let held = scene.hold(node).await;
    assert_eq!(scene.ask(ReadCall { call: call_id(first) }).await.unwrap(), None);
    assert_eq!(scene.refusal(held.emit(1, vec![told("seen", "1")])).await, Refusal::NotHeld);
    assert_eq!(scene.cancel(&call_id(first)).await, Cancelling::Unknown);
    let read = ReadEvents { call: call_id(first), from: 1, max_bytes: 9 };
    assert_eq!(scene.refusal(read).await, Refusal::NoCall);
    let follow = FollowCall { session: node, call: call_id(first), from: 1, number: 1, max_bytes: 9 };
    assert_eq!(scene.refusal(follow).await, Refusal::NoCall);
    scene.end(&held, Outcome::DONE).await;
}

/// A call ends with the last of the messages that joined it; one that dies ends it, and the others at their next step.
pub async fn follow_ups_join_a_call(scene: &mut Scene) {
    let node = scene.node().await;
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    let follow_ups = vec![joining("q"), joining("q"), Submission { ..submission(parcel(1)) }];
    scene.end(&held, Outcome::Done { result: Some(Bytes::from_static(b"7")), follow_ups }).await;
    assert_eq!(scene.state(&call).await, CallState::Ready);
    let held = scene.hold(node).await;
    scene.ask(held.emit(1, vec![told("part", "1")])).await.unwrap();
    scene.end(&held, retry(5)).await;
    scene.finish(node, 1, Outcome::DONE).await;
    assert_eq!(scene.state(&call).await, CallState::Delayed);
    scene.finish(node, 1, Outcome::DONE).await;
    scene.subject.pass(5).await;
    let held = scene.hold(node).await;
    scene.end(&held, done("8")).await;
    let restarted = held.stored("restart", "2");
    assert_eq!(scene.events(&call, 1).await, [stored("part", "1"), restarted, stored("end", "7")]);
    assert_eq!(scene.view(&call).await.outcome, Some(Bytes::from_static(b"7")));
    // One of three dies.
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    let follow_ups = vec![joining("q"), joining("q"), joining("q")];
    scene.end(&held, Outcome::Done { result: Some(Bytes::from_static(b"9")), follow_ups }).await;
    let (first, second) = (scene.hold(node).await, scene.hold(node).await);
    scene.end(&first, dead("broken")).await;
    assert_eq!(scene.state(&call).await, CallState::Failed);
    assert_eq!(scene.beat(node).await.unwrap().cancelled, [filed(&call)]);
    scene.end(&second, Outcome::Back).await;
    assert_eq!(scene.beat(node).await.unwrap().cancelled, []);
    assert_eq!(scene.claim(node, 9).await.1, []);
    assert_eq!(scene.events(&call, 1).await, [first.stored("error", "broken")]);
    assert_eq!(scene.view(&call).await.outcome, Some(Bytes::from_static(b"broken")));
    let books = scene.books().await;
    assert_eq!((books.done, books.failed, books.cancelled, books.cancelled_sum.value()), (5, 1, 2, 7 + 8));
}

/// A claim withholds what was cancelled, whether it waits or is due again.
pub async fn a_claim_withholds_what_was_cancelled(scene: &mut Scene) {
    let node = scene.node().await;
    let (first, second) = (scene.begin(node, None).await, scene.begin(node, None).await);
    scene.finish(node, 1, retry(50)).await;
    scene.fill(node, 2).await;
    let third = scene.begin(node, None).await;
    for call in [&first, &second, &third] {
        assert_eq!(scene.cancel(call).await, Cancelling::Marked);
    }
    assert_eq!(scene.state(&first).await, CallState::Cancelled, "it was delayed");
    assert_eq!((scene.state(&second).await, scene.state(&third).await), (CallState::Cancelling, CallState::Cancelling));
    let books = scene.books().await;
    assert_eq!((books.ready, books.delayed, books.cancelled), (4, 0, 1), "what waits for a claim counts as it was");
    let (_, spans) = scene.claim(node, 9).await;
    assert_eq!(spans.iter().map(|(span, _)| span.range).collect::<Vec<_>>(), [range(3, 2)]);
    assert_eq!((scene.state(&second).await, scene.state(&third).await), (CallState::Cancelled, CallState::Cancelled));
    scene.subject.pass(50).await;
    assert_eq!(scene.claim(node, 9).await.1, []);
    for call in [&first, &second, &third] {
        assert_eq!(scene.events(call, 1).await, [stored("cancelled", "")]);
        assert_eq!(scene.cancel(call).await, Cancelling::Ended);
    }
    let books = scene.books().await;
    assert_eq!((books.ready, books.delayed, books.cancelled, books.cancelled_sum.value()), (0, 0, 3, 1 + 2 + 5));
}

/// What waits delayed ends with the cancel of its call, some with each step, and its books are right.
pub async fn a_cancel_ends_what_is_delayed_at_once(scene: &mut Scene) {
    const HOUR: u64 = 3_600_000;
    let node = scene.node().await;
    let alone = scene.begin(node, None).await;
    scene.finish(node, 1, retry(HOUR)).await;
    // Plain messages and other calls that are due at the same time stay.
    scene.fill(node, 1).await;
    let other = scene.begin(node, None).await;
    scene.finish(node, 2, retry(HOUR)).await;
    assert_eq!((scene.state(&alone).await, scene.books().await.delayed), (CallState::Delayed, 3));
    scene.follow(node, &alone, 1).await;
    assert_eq!(scene.cancel(&alone).await, Cancelling::Marked);
    assert_eq!(scene.state(&alone).await, CallState::Cancelled);
    assert_eq!(scene.events(&alone, 1).await, [stored("cancelled", "")]);
    assert_eq!(scene.cancel(&alone).await, Cancelling::Ended);
    let books = scene.books().await;
    assert_eq!((books.ready, books.delayed, books.cancelled, books.cancelled_sum.value()), (0, 2, 1, 1));
    // One with many messages: some delayed, in two queues, one that is run, and one that waits.
    let many = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    let parts = (0..200).map(|nth| joining(if nth % 2 == 0 { "q" } else { "p" })).collect();
    scene.end(&held, Outcome::Done { result: None, follow_ups: parts }).await;
    let runs = scene.hold(node).await;
    scene.finish(node, 98, retry(HOUR)).await;
    let elsewhere = Claim { session: node, queue: name("p"), claim_no: 1, n: 100, max_bytes: 1 << 30 };
    let ranges = spans(scene.ask(elsewhere).await.unwrap()).into_iter().map(|(span, _)| span.range);
    let runs_there = ranges.map(|range| Run { queue: name("p"), ..run(1, range, retry(HOUR)) }).collect();
    scene.settle(node, runs_there).await;
    assert_eq!(scene.books().await.delayed, 2 + 98);
    for _ in 0..3 {
        assert_eq!(scene.cancel(&many).await, Cancelling::More);
        // Should the one who cancels be gone, others are told to go on.
        assert_eq!(scene.beat(node).await.unwrap().forsaken, [filed(&many)]);
    }
    assert_eq!(scene.forsaken(&many).await, Cancelling::Marked);
    assert_eq!(scene.beat(node).await.unwrap().forsaken, []);
    let books = scene.books().await;
    assert_eq!((books.ready, books.delayed, books.in_flight, books.cancelled), (1, 2, 1, 1 + 98));
    assert_eq!(scene.state(&many).await, CallState::Cancelling);
    scene.end(&runs, retry(HOUR)).await;
    assert_eq!(scene.claim(node, 9).await.1, []);
    assert_eq!(scene.events(&many, 1).await, [stored("cancelled", "")]);
    // One whose message dies: those of it that are delayed are ended by whoever beats.
    let dies = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    scene.end(&held, Outcome::Done { result: None, follow_ups: vec![joining("q"), joining("q")] }).await;
    scene.finish(node, 1, retry(HOUR)).await;
    scene.finish(node, 1, dead("broken")).await;
    assert_eq!(scene.beat(node).await.unwrap().forsaken, [filed(&dies)]);
    assert_eq!(scene.books().await.delayed, 3);
    assert_eq!(scene.forsaken(&dies).await, Cancelling::Marked);
    assert_eq!(scene.forsaken(&dies).await, Cancelling::Ended);
    assert_eq!((scene.state(&dies).await, scene.books().await.delayed), (CallState::Failed, 2));
    assert_eq!(scene.beat(node).await.unwrap().forsaken, []);
    // What was due together with them is run.
    scene.subject.pass(HOUR).await;
    let node = scene.node().await;
    scene.finish(node, 2, Outcome::DONE).await;
    assert_eq!(scene.state(&other).await, CallState::Done);
}

/// Neither a retry nor a hand-back nor the loss of a session returns what was cancelled; what is done or dead stays so.
pub async fn done_and_dead_win_over_a_cancel(scene: &mut Scene) {
    let (node, lost, leaving) = (scene.node().await, scene.node().await, scene.node().await);
    let mut calls = Vec::new();
    for _ in 0..6 {
        calls.push(scene.begin(node, None).await);
    }
    let mut held = Vec::new();
    for session in [node, node, node, node, lost, leaving] {
        held.push(scene.hold(session).await);
    }
    for call in &calls {
        assert_eq!(scene.cancel(call).await, Cancelling::Marked);
        assert_eq!(scene.cancel(call).await, Cancelling::Marked);
    }
    let filed: Vec<_> = calls.iter().map(filed).collect();
    assert_eq!(scene.beat(node).await.unwrap().cancelled, filed[..4]);
    assert_eq!(scene.beat(lost).await.unwrap().cancelled, filed[4..5]);
    scene.ask(held[0].emit(1, vec![told("late", "1")])).await.unwrap();
    scene.end(&held[0], done("1")).await;
    scene.end(&held[1], dead("no")).await;
    scene.end(&held[2], retry(1)).await;
    scene.end(&held[3], Outcome::Back).await;
    scene.leave(leaving).await;
    scene.lose(node, lost).await;
    let mut states = Vec::new();
    for call in &calls {
        states.push(scene.state(call).await);
    }
    let ended = [CallState::Done, CallState::Failed, CallState::Cancelled];
    assert_eq!(states, [ended[0], ended[1], ended[2], ended[2], ended[2], ended[2]]);
    assert_eq!(scene.beat(node).await.unwrap().cancelled, []);
    let books = scene.books().await;
    assert_eq!((books.done, books.failed, books.cancelled, books.cancelled_sum.value()), (1, 1, 4, 3 + 4 + 5 + 6));
    assert_eq!((books.ready, books.delayed, books.in_flight), (0, 0, 0));
    // The error is a plain message from now on.
    scene.drain(node).await;
    let requeue = scene.a_dispose(node, &[2], Disposal::Requeue);
    scene.ask(requeue).await.unwrap();
    let again = scene.hold(node).await;
    assert_eq!(again.span.role, None);
    assert_eq!(scene.refusal(again.emit(1, vec![told("late", "1")])).await, Refusal::NotHeld);
    scene.end(&again, Outcome::DONE).await;
    assert_eq!(scene.state(&calls[1]).await, CallState::Failed);
}

/// A call that asked for it is cancelled after so long without a follower, and no earlier.
pub async fn a_forsaken_call_is_cancelled(scene: &mut Scene) {
    let (node, follower, other) = (scene.node().await, scene.node().await, scene.node().await);
    let (call, stays) = (scene.begin(node, Some(400)).await, scene.begin(node, None).await);
    assert_eq!(scene.forsaken(&call).await, Cancelling::Followed, "too early");
    assert_eq!(scene.forsaken(&stays).await, Cancelling::Followed, "it goes on without");
    scene.live(200, &[node, follower, other]).await;
    scene.follow(follower, &call, 1).await;
    scene.live(400, &[node, follower, other]).await;
    assert_eq!(scene.beat(node).await.unwrap().forsaken, [filed(&call)]);
    assert_eq!(scene.forsaken(&call).await, Cancelling::Followed);
    assert_eq!(scene.beat(node).await.unwrap().forsaken, []);
    let unfollow = |session, number| UnfollowCall { session, call: call.clone(), number };
    scene.ask(unfollow(follower, 8)).await.unwrap();
    scene.ask(unfollow(other, 7)).await.unwrap();
    scene.live(400, &[node, follower, other]).await;
    assert_eq!(scene.forsaken(&call).await, Cancelling::Followed, "it follows under another number");
    scene.ask(unfollow(follower, 7)).await.unwrap();
    scene.live(399, &[node, follower, other]).await;
    assert_eq!(scene.forsaken(&call).await, Cancelling::Followed, "a moment ago");
    scene.follow(other, &call, 1).await;
    // One that dies follows no longer.
    scene.live(LEASE + 200, &[node, follower]).await;
    scene.lose(node, other).await;
    scene.ask(CancelCall { call: call.clone(), if_forsaken: true }).await.unwrap();
    scene.live(400, &[node]).await;
    assert_eq!(scene.forsaken(&call).await, Cancelling::Marked);
    assert_eq!(scene.beat(node).await.unwrap().forsaken, []);
    scene.finish(node, 9, Outcome::DONE).await;
    assert_eq!((scene.state(&call).await, scene.state(&stays).await), (CallState::Cancelled, CallState::Done));
}

/// A call is forgotten an hour after its end, with what it told, by the next that begins.
pub async fn a_call_is_kept_for_an_hour(scene: &mut Scene) {
    let node = scene.node().await;
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    scene.ask(held.emit(1, vec![stored_under("k", "e", "1")])).await.unwrap();
    scene.end(&held, Outcome::DONE).await;
    scene.subject.pass(CALL_TTL_MS - 1).await;
    scene.begin(node, None).await;
    assert_eq!(scene.state(&call).await, CallState::Done);
    scene.subject.pass(1).await;
    scene.begin(node, None).await;
    assert_eq!(scene.ask(ReadCall { call: call.clone() }).await.unwrap(), None);
    assert_eq!(scene.refusal(ReadEvents { call, from: 1, max_bytes: 9 }).await, Refusal::NoCall);
}

/// Calls that have ended take no more than a bound, whatever they told: the oldest go. Those under way are not counted.
pub async fn calls_that_have_ended_are_kept_within_a_bound(scene: &mut Scene) {
    // What one counts for that has told nothing but its end, without a result.
    const SILENT: u64 = 512 + 64 + 5;
    let node = scene.node().await;
    let open = scene.begin(node, None).await;
    let opened = scene.hold(node).await;
    let mut ended = Vec::new();
    let end = async |scene: &mut Scene, max_results: u64| {
        let call = scene.begin(node, None).await;
        let held = scene.hold(node).await;
        let runs = vec![run(held.claim_no, held.span.range, Outcome::DONE)];
        let settle = Settle { max_results, ..scene.a_settle(node, runs) };
        assert_eq!(scene.ask(settle).await.unwrap().refused, []);
        call
    };
    for _ in 0..12 {
        ended.push(end(scene, 12 * SILENT).await);
    }
    assert_eq!(scene.kept(&ended).await, (0..12).collect::<Vec<_>>());
    ended.push(end(scene, 12 * SILENT).await);
    assert_eq!(scene.kept(&ended).await, (1..13).collect::<Vec<_>>(), "as many go as come, in the order of their ids");
    assert_eq!(scene.refusal(ReadEvents { call: ended[0].clone(), from: 1, max_bytes: 9 }).await, Refusal::NoCall);
    // Those that ended otherwise count too, and make room with the next report.
    let cancelled = scene.begin(node, None).await;
    scene.cancel(&cancelled).await;
    assert_eq!(scene.claim(node, 1).await.1, []);
    ended.push(end(scene, 12 * SILENT).await);
    assert_eq!(scene.kept(&ended).await, (4..14).collect::<Vec<_>>(), "its last event is longer");
    assert_eq!(scene.state(&cancelled).await, CallState::Cancelled);
    // A long log, a key and an outcome count for their bytes.
    scene.ask(opened.emit(1, vec![stored_under("k", "e", &"1".repeat(5 * SILENT as usize))])).await.unwrap();
    assert_eq!(scene.kept(&ended).await.len(), 10, "it has not ended");
    scene.subject.pass(1).await;
    let outcome = Outcome::Done { result: Some(Bytes::from(vec![b'1'; 2 * SILENT as usize])), follow_ups: Vec::new() };
    let settle = scene.a_settle(node, vec![run(opened.claim_no, opened.span.range, outcome)]);
    scene.ask(Settle { max_results: 12 * SILENT, ..settle }).await.unwrap();
    assert_eq!(scene.state(&open).await, CallState::Done);
    assert_eq!(scene.kept(&ended).await, [13]);
    // The oldest go also where the newest is too large; a call does a bounded part of what a lower bound asks for.
    ended.push(end(scene, SILENT).await);
    assert_eq!(scene.kept(&ended).await, [14]);
    for _ in 0..30 {
        ended.push(end(scene, 100 * SILENT).await);
    }
    ended.push(end(scene, 0).await);
    assert_eq!(scene.kept(&ended).await.len(), 32 - 17);
    ended.push(end(scene, 0).await);
    assert_eq!(scene.kept(&ended).await.len(), 0);
}

/// The same key is the same call; if it is shared, only while that has not ended.
pub async fn a_key_is_one_call(scene: &mut Scene) {
    let node = scene.node().await;
    let under =
        |key: &str, share| Submission { call: Some(Calling::Begins { linger_ms: None, share }), ..keyed(key, "0") };
    let submissions = vec![under("k", false), under("k", false), under("s", true), under("s", true)];
    let submit = scene.a_submit(node, submissions);
    let (stored, known) = (
        |first, born| SubmissionVerdict::Begun { first, born },
        |first, born| SubmissionVerdict::Known { first, born },
    );
    let born = scene.subject.now();
    assert_eq!(
        scene.ask(submit).await.unwrap().submissions,
        [stored(1, born), known(1, born), stored(2, born), known(2, born)]
    );
    scene.finish(node, 9, Outcome::DONE).await;
    scene.subject.pass(7).await;
    let submit = scene.a_submit(node, vec![under("k", false), under("s", true), under("s", true)]);
    let later = scene.subject.now();
    assert_eq!(later, born + 7);
    assert_eq!(
        scene.ask(submit.clone()).await.unwrap().submissions,
        [known(1, born), stored(3, later), known(3, later)]
    );
    scene.subject.pass(1).await;
    assert_eq!(
        scene.ask(submit).await.unwrap().submissions,
        [known(1, born), stored(3, later), known(3, later)],
        "a repeat"
    );
    assert_eq!(scene.view(&call_id(3)).await.born, later);
    scene.cancel(&call_id(3)).await;
    assert_eq!(scene.claim(node, 1).await.1, []);
    let submit = scene.a_submit(node, vec![under("s", true)]);
    let later = scene.subject.now();
    assert_eq!(scene.ask(submit).await.unwrap().submissions, [stored(4, later)]);
}

/// After a store has lost its data ids begin again: who names the former message with its birth is not given the later one.
pub async fn a_later_message_with_the_id_is_another(scene: &mut Scene) {
    let node = scene.node().await;
    let lost = scene.begin(node, None).await;
    scene.leave(node).await;
    scene.ask(Destroy).await.unwrap();
    scene.subject.pass(1).await;
    let node = scene.node().await;
    let call = scene.begin(node, None).await;
    assert_eq!((&lost.queue, lost.id), (&call.queue, call.id));
    let held = scene.hold(node).await;
    scene.ask(held.emit(1, vec![told("seen", "1")])).await.unwrap();
    assert_eq!(scene.refusal(ReadCall { call: lost.clone() }).await, Refusal::OtherCall);
    assert_eq!(scene.refusal(ReadEvents { call: lost.clone(), from: 1, max_bytes: 9 }).await, Refusal::OtherCall);
    let follow = FollowCall { session: node, call: lost.clone(), from: 1, number: 1, max_bytes: 9 };
    assert_eq!(scene.refusal(follow).await, Refusal::OtherCall);
    assert_eq!(scene.refusal(CancelCall { call: lost.clone(), if_forsaken: false }).await, Refusal::OtherCall);
    let unfollow = UnfollowCall { session: node, call: lost, number: 1 };
    assert_eq!(scene.refusal(unfollow).await, Refusal::OtherCall);
    // The later one is there for who names it, and for who looks by hand.
    for name in [&call, &filed(&call)] {
        assert_eq!(scene.state(name).await, CallState::InFlight);
        assert_eq!(scene.events(name, 1).await, [stored("seen", "1")]);
    }
}
