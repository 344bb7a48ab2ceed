//! Events of calls: what is kept, for how long, and who is told of it.

use baton::store::{
    CallState, Emit, Emitted, EventPage, FollowCall, MAX_EMIT_KEYS, MAX_EVENTS, ReadEvents, Refusal, message::Outcome,
};

use super::{
    call_scene::{done, retry, stored, stored_under, told},
    scene::Scene,
};

/// Each number is kept once, whoever repeats it, and only for who holds the message.
pub async fn an_emit_is_kept_once_and_only_for_the_holder(scene: &mut Scene) {
    let (node, other) = (scene.node().await, scene.node().await);
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    for _ in 0..2 {
        assert_eq!(scene.ask(held.emit(1, vec![told("a", "1"), told("b", "2")])).await.unwrap(), Emitted::Kept);
    }
    assert_eq!(scene.refusal(held.emit(2, vec![told("b", "2"), told("c", "3")])).await, Refusal::OutOfTurn { last: 2 });
    assert_eq!(scene.refusal(held.emit(4, vec![told("d", "4")])).await, Refusal::OutOfTurn { last: 2 });
    let elsewhere = Emit { session: other, ..held.emit(3, vec![told("c", "3")]) };
    assert_eq!(scene.refusal(elsewhere).await, Refusal::NotHeld);
    let earlier = Emit { claim_no: held.claim_no + 1, ..held.emit(3, vec![told("c", "3")]) };
    assert_eq!(scene.refusal(earlier).await, Refusal::NotHeld);
    scene.ask(held.emit(3, vec![told("c", "3")])).await.unwrap();
    scene.end(&held, Outcome::Back).await;
    assert_eq!(scene.refusal(held.emit(4, vec![told("d", "4")])).await, Refusal::NotHeld);
    assert_eq!(scene.events(&call, 1).await, [stored("a", "1"), stored("b", "2"), stored("c", "3")]);
    scene.finish(node, 1, Outcome::DONE).await;
    assert_eq!(scene.refusal(held.emit(4, vec![told("d", "4")])).await, Refusal::NotHeld);
}

/// What is run again says so, and a key is told once in a call.
pub async fn a_new_attempt_voids_what_has_no_key(scene: &mut Scene) {
    let (node, other) = (scene.node().await, scene.node().await);
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    scene.ask(held.emit(1, vec![stored_under("k1", "match", "1"), told("seen", "1")])).await.unwrap();
    scene.end(&held, retry(10)).await;
    assert_eq!(scene.state(&call).await, CallState::Delayed);
    scene.subject.pass(10).await;
    let held = scene.hold(other).await;
    let again =
        vec![stored_under("k1", "match", "1"), stored_under("k2", "match", "2"), stored_under("k2", "match", "2")];
    scene.ask(held.emit(1, again)).await.unwrap();
    // Lost with its session; whoever has told nothing restarts nothing.
    scene.lose(node, other).await;
    assert_eq!(scene.state(&call).await, CallState::Ready);
    let held = scene.hold(node).await;
    scene.end(&held, Outcome::Back).await;
    let held = scene.hold(node).await;
    scene.end(&held, Outcome::DONE).await;
    let events = [
        stored_under("k1", "match", "1").bytes,
        stored("seen", "1"),
        stored("restart", "2"),
        stored_under("k2", "match", "2").bytes,
        stored("restart", "2"),
        stored("end", ""),
    ];
    assert_eq!(scene.events(&call, 1).await, events);
}

/// At the bound of a log what was read goes first, what nobody has read only by force; without a follower the oldest.
pub async fn a_log_is_bounded_and_waits_for_the_fastest_follower(scene: &mut Scene) {
    let (node, slow) = (scene.node().await, scene.node().await);
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    // Each counts for 100 bytes.
    let event = |n: u64| told("e", &format!("{n:033}"));
    let emit = |number: u64, count: u64| Emit {
        max_log: 500,
        ..held.emit(number, (number..number + count).map(event).collect())
    };
    for number in 1..=6 {
        assert_eq!(scene.ask(emit(number, 1)).await.unwrap(), Emitted::Kept);
    }
    let view = scene.view(&call).await;
    assert_eq!((view.first, view.next), (2, 7), "nobody follows: the oldest goes");
    let read = ReadEvents { call: call.clone(), from: 1, max_bytes: 1 };
    assert_eq!(scene.refusal(read).await, Refusal::EventsGone { first: 2 });
    let page = scene.follow(slow, &call, 3).await;
    assert_eq!((page.events.len(), page.next, page.ended), (4, 7, false));
    assert_eq!(scene.ask(emit(7, 1)).await.unwrap(), Emitted::Kept, "what is before its place was read");
    assert_eq!(scene.ask(emit(8, 2)).await.unwrap(), Emitted::Full);
    assert_eq!(scene.view(&call).await.next, 8);
    let fast = scene.node().await;
    scene.follow(fast, &call, 8).await;
    assert_eq!(scene.ask(emit(8, 2)).await.unwrap(), Emitted::Kept, "the fastest has read all");
    let follow = FollowCall { session: slow, call: call.clone(), from: 4, number: 7, max_bytes: 1 };
    assert_eq!(scene.refusal(follow).await, Refusal::EventsGone { first: 5 });
    assert_eq!(scene.ask(emit(10, 5)).await.unwrap(), Emitted::Full);
    assert_eq!(scene.ask(Emit { force: true, ..emit(10, 5) }).await.unwrap(), Emitted::Kept);
    assert_eq!(scene.view(&call).await.first, 10);
    // Followers whose sessions are gone are waited for no longer.
    scene.leave(fast).await;
    assert_eq!(scene.ask(emit(15, 1)).await.unwrap(), Emitted::Full, "the slow one is there");
    scene.leave(slow).await;
    assert_eq!(scene.ask(emit(15, 7)).await.unwrap(), Emitted::Kept, "more than the bound is kept alone");
    assert_eq!(scene.events(&call, 15).await.len(), 7);
    scene.end(&held, done("1")).await;
    assert_eq!(scene.events(&call, 22).await, [stored("end", "1")]);
}

/// Keys of a call have a bound, and then no further one is taken.
pub async fn the_keys_of_a_call_are_bounded(scene: &mut Scene) {
    let node = scene.node().await;
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    let under = |n: u64| stored_under(&format!("{n:0200}"), "e", "1");
    let (mut number, most) = (1, MAX_EMIT_KEYS / 200);
    while number <= most {
        let count = (most + 1 - number).min(MAX_EVENTS as u64);
        let events = (number..number + count).map(under).collect();
        assert_eq!(scene.ask(Emit { max_log: 1 << 12, ..held.emit(number, events) }).await.unwrap(), Emitted::Kept);
        number += count;
    }
    assert_eq!(scene.refusal(held.emit(number, vec![under(number)])).await, Refusal::EmitKeysFull);
    assert_eq!(scene.ask(held.emit(number, vec![under(1), told("e", "1")])).await.unwrap(), Emitted::Kept);
    assert_eq!(scene.view(&call).await.next, most + 2);
    scene.end(&held, Outcome::DONE).await;
}

/// A follower that has read all is woken once there is more, and a page is bounded.
pub async fn a_follower_is_woken_when_there_is_more(scene: &mut Scene) {
    let (node, follower) = (scene.node().await, scene.node().await);
    let call = scene.begin(node, None).await;
    let held = scene.hold(node).await;
    assert_eq!(scene.follow(follower, &call, 1).await, EventPage { from: 1, events: vec![], next: 1, ended: false });
    for number in 1..=3 {
        scene.ask(held.emit(number, vec![told("e", &number.to_string())])).await.unwrap();
    }
    let store = scene.subject.store.clone();
    let woken = store.wait(follower, std::sync::Arc::new(Vec::new())).await.unwrap();
    assert_eq!((woken.follows, woken.queues), (vec![7], vec![]));
    let follow = |from, max_bytes| FollowCall { session: follower, call: call.clone(), from, number: 8, max_bytes };
    assert_eq!(scene.ask(follow(1, 0)).await.unwrap().events, [stored("e", "1")]);
    assert_eq!(scene.ask(follow(2, 8)).await.unwrap().events, [stored("e", "2"), stored("e", "3")]);
    assert_eq!(scene.ask(follow(99, 8)).await.unwrap().from, 4);
    scene.end(&held, Outcome::DONE).await;
    let woken = store.wait(follower, std::sync::Arc::new(Vec::new())).await.unwrap();
    assert_eq!(woken.follows, [8]);
    let page = scene.ask(follow(4, 8)).await.unwrap();
    assert_eq!((page.events, page.next, page.ended), (vec![stored("end", "")], 5, true));
}
