//! Waiting for work, and whom a queue wakes. Waits are in real time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use baton::{
    Name, SessionId,
    store::{
        Beat, Claim, Join, Kind, Look, MAX_WAIT, Order, Pass, Reap, Refusal, Resign, Rest, Waiting, Woken,
        message::{Outcome, Submission},
    },
};
use bytes::Bytes;

use super::scene::{LEASE, Scene, name, nothing, offer, parcel, queue, run, submission};

impl Scene {
    /// Waits with these claims.
    async fn wait(&self, session: SessionId, claims: Vec<Claim>) -> Woken {
        self.subject.store.wait(session, Arc::new(claims)).await.unwrap()
    }

    /// What is on the wake-up list of a session.
    async fn woken(&self, session: SessionId) -> Vec<Name> {
        self.wait(session, Vec::new()).await.queues
    }

    /// Claims in vain, and so waits.
    async fn idle(&mut self, session: SessionId) {
        let claim = Claim { claim_no: 1, ..self.a_claim(session, 100) };
        assert_eq!(self.ask(claim).await.unwrap().spans, []);
    }

    async fn helped(&self, session: SessionId) -> bool {
        let beat = Beat { session, report: Bytes::new(), asks: vec![queue()] };
        self.ask(beat).await.unwrap().helped == [queue()]
    }
}

/// Long before the wait would have ended by itself, also when the push came first. The claim is carried out under its
/// number, and is not carried out again once that is used.
pub async fn a_push_wakes_a_waiting_worker(scene: &mut Scene) {
    let node = scene.node().await;
    scene.idle(node).await;
    let store = scene.subject.store.clone();
    for round in 1..=3 {
        let claim = Claim { claim_no: round, ..scene.a_claim(node, 9) };
        let worker = tokio::spawn({
            let (store, claim) = (store.clone(), claim.clone());
            async move { store.wait(node, Arc::new(vec![claim])).await }
        });
        let start = Instant::now();
        let submit = scene.a_submit(node, vec![submission(parcel(1))]);
        scene.ask(submit).await.unwrap();
        let woken = worker.await.unwrap().unwrap();
        assert!(start.elapsed() < MAX_WAIT / 2, "round {round}: {:?}", start.elapsed());
        assert_eq!(woken.queues, [], "round {round}");
        let (claim_no, claimed) = &woken.claimed[0];
        assert_eq!((*claim_no, claimed.spans.len()), (round, 1), "round {round}");
        assert_eq!(claimed.rest, Rest::Nothing { next_due_ms: None }, "round {round}");
        assert_eq!(scene.ask(claim).await.unwrap().spans, claimed.spans, "a lost answer is given again");
        let outcome = run(round, claimed.spans[0].0.range, Outcome::DONE);
        scene.settle(node, vec![outcome]).await;
    }
    let submit = scene.a_submit(node, vec![submission(parcel(1))]);
    scene.ask(submit).await.unwrap();
    let used = Claim { claim_no: 3, ..scene.a_claim(node, 9) };
    assert_eq!(scene.wait(node, vec![used]).await, Woken { queues: vec![queue()], ..Woken::default() });
}

/// A claim waits on with later reads until it is carried out; one of another queue does not hold it up.
pub async fn a_claim_waits_on_while_others_are_served(scene: &mut Scene) {
    let join = Join { queues: vec![name("q"), name("r")], ..scene.a_join(Kind::Node, Vec::new()) };
    let node = join.session;
    scene.ask(join).await.unwrap();
    let of = |queue: &str, n: u32| Claim { session: node, queue: name(queue), claim_no: 1, n, max_bytes: 1 << 20 };
    for queue in ["q", "r"] {
        assert_eq!(scene.ask(of(queue, 9)).await.unwrap().spans, []);
    }
    let waiting: Arc<Vec<Claim>> = Arc::new(vec![of("q", 2), of("r", 9)]);
    let store = scene.subject.store.clone();
    for (at, wanted) in [("r", 3), ("q", 2)] {
        let submit = scene.a_submit(node, vec![Submission { queue: name(at), ..submission(parcel(3)) }]);
        scene.ask(submit).await.unwrap();
        let claims: Arc<dyn Waiting> = if at == "r" { waiting.clone() } else { Arc::new(Late(waiting.clone())) };
        let woken = store.wait(node, claims).await.unwrap();
        let claimed: Vec<_> = woken.claimed.iter().map(|(_, it)| (it.queue.clone(), it.spans[0].0.range.len)).collect();
        assert_eq!((woken.queues, claimed), (Vec::new(), vec![(name(at), wanted)]));
    }
}

/// Claims that have been handed in before.
struct Late(Arc<Vec<Claim>>);

impl Waiting for Late {
    fn claim(&self, queue: &Name) -> Option<Claim> {
        self.0.claim(queue)
    }

    fn newcomers(&self) -> Vec<Claim> {
        Vec::new()
    }
}

/// A wait that nobody ends ends by itself, and its claim is not carried out.
pub async fn a_wait_without_a_message_lasts_its_time_and_ends(scene: &mut Scene) {
    let node = scene.node().await;
    let claim = scene.a_claim(node, 9);
    let start = Instant::now();
    for _ in 0..2 {
        assert_eq!(scene.wait(node, vec![claim.clone()]).await, Woken::default());
    }
    assert!(start.elapsed() >= MAX_WAIT, "it returned early, which makes workers spin");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(scene.ask(claim).await.unwrap(), nothing(None));
}

/// What the store does at the end of a wait is no sign of life: whoever waits may have been stopped meanwhile.
pub async fn a_wait_does_not_extend_a_lease(scene: &mut Scene) {
    let (silent, other) = (scene.node().await, scene.node().await);
    scene.idle(silent).await;
    scene.live(LEASE - 100, &[other]).await;
    let waiting = Claim { claim_no: 1, ..scene.a_claim(silent, 9) };
    assert_eq!(scene.wait(silent, vec![waiting]).await, Woken::default());
    scene.live(101, &[other]).await;
    let reaped = scene.ask(Reap { session: other, target: silent }).await.unwrap();
    assert_eq!(reaped.counts(), Some((0, 0)));
}

/// One session a message, the one that waited longest first.
pub async fn a_message_wakes_one_session(scene: &mut Scene) {
    let (first, second, busy) = (scene.node().await, scene.node().await, scene.node().await);
    scene.idle(second).await;
    scene.subject.pass(1).await;
    scene.idle(first).await;
    for (want, other) in [(second, first), (first, second)] {
        scene.fill(busy, 1).await;
        assert_eq!((scene.woken(want).await, scene.woken(other).await), (vec![queue()], vec![]));
    }
    scene.fill(busy, 1).await;
    assert_eq!((scene.woken(first).await, scene.woken(second).await), (vec![], vec![]), "nobody waits");
}

/// Whatever a claim leaves behind is another's to see to: ready, due, or due before anybody looks.
pub async fn a_claim_that_leaves_something_wakes_the_next(scene: &mut Scene) {
    for leave in ["ready", "due", "soon"] {
        let taker = scene.node().await;
        scene.fill(taker, 2).await;
        let (claim_no, claimed) = scene.claim(taker, 2).await;
        let mut waiting = Vec::new();
        for _ in 0..3 {
            let session = scene.node().await;
            scene.idle(session).await;
            scene.subject.pass(1).await;
            waiting.push(session);
        }
        let after_ms = if leave == "soon" { 700 } else { 0 };
        let outcome = if leave == "ready" { Outcome::Back } else { Outcome::Retry { after_ms, error: String::new() } };
        scene.settle(taker, vec![run(claim_no, claimed[0].0.range, outcome)]).await;
        assert_eq!(scene.woken(waiting.remove(0)).await, [queue()], "{leave}: what came back");
        if leave == "soon" {
            scene.fill(taker, 1).await;
            assert_eq!(scene.woken(waiting.remove(0)).await, [queue()], "what is new");
        }
        let (claim_no, claimed) = scene.claim(taker, 1).await;
        assert_eq!(scene.woken(waiting.remove(0)).await, [queue()], "{leave}: what was left");
        scene.settle(taker, vec![run(claim_no, claimed[0].0.range, Outcome::DONE)]).await;
        for session in waiting {
            assert_eq!(scene.woken(session).await, [], "{leave}");
            scene.leave(session).await;
        }
        scene.live(800, &[taker]).await;
        while !scene.finish(taker, 9, Outcome::DONE).await.is_empty() {}
    }
}

/// A wake-up that a session cannot use goes to another, and one that a session takes with it too.
pub async fn wake_ups_are_passed_on(scene: &mut Scene) {
    let (one, two, three) = (scene.node().await, scene.node().await, scene.node().await);
    for session in [one, two, three] {
        scene.idle(session).await;
        scene.subject.pass(1).await;
    }
    scene.fill(one, 1).await;
    assert_eq!(scene.woken(one).await, [queue()]);
    scene.ask(Pass { session: one, queue: queue() }).await.unwrap();
    scene.leave(two).await;
    assert_eq!(scene.woken(three).await, [queue()], "the second left with the wake-up on its list");
    assert_eq!(scene.woken(one).await, []);
}

/// Whoever goes takes its places with it, also those whose claims wait in the store, and others are woken in its stead:
/// several, since who is woken may have died with it.
pub async fn a_session_that_goes_wakes_several_others(scene: &mut Scene) {
    let (gone, others) = (scene.node().await, [scene.node().await, scene.node().await, scene.node().await]);
    scene.idle(gone).await;
    let waiting = Claim { claim_no: 1, ..scene.a_claim(gone, 9) };
    assert_eq!(scene.wait(gone, vec![waiting]).await, Woken::default());
    scene.subject.pass(1).await;
    for session in others {
        scene.idle(session).await;
    }
    scene.fill(others[0], 1).await;
    scene.leave(gone).await;
    for session in others {
        assert_eq!(scene.woken(session).await, [queue()]);
    }
    assert_eq!(scene.finish(others[0], 9, Outcome::DONE).await.len(), 1);
    scene.idle(others[0]).await;
    scene.fill(others[1], 1).await;
    assert_eq!(scene.woken(others[0]).await, [queue()], "nobody who is gone waits any more");
}

/// What is worth a claim: something now, something later, or a place among those who wait that was lost.
pub async fn a_look_tells_what_is_worth_a_claim(scene: &mut Scene) {
    let node = scene.node().await;
    let looked = async |scene: &Scene| scene.ask(Look { session: node }).await.unwrap().queues;
    assert_eq!(looked(scene).await, [(queue(), 0)], "it does not wait yet");
    scene.idle(node).await;
    assert_eq!(looked(scene).await, []);
    scene.fill(node, 2).await;
    assert_eq!(looked(scene).await, [(queue(), 0)]);
    let (claim_no, claimed) = scene.claim(node, 9).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(looked(scene).await, []);
    let retry = run(claim_no, claimed[0].0.range, Outcome::Retry { after_ms: 300, error: String::new() });
    scene.settle(node, vec![retry]).await;
    assert_eq!(looked(scene).await, [(queue(), 0)], "it was woken for the delayed ones, and does not wait any more");
    scene.idle(node).await;
    assert_eq!(looked(scene).await, [(queue(), 300)]);
    scene.ask(Order::Pause(queue())).await.unwrap();
    assert_eq!(looked(scene).await, []);
    scene.leave(node).await;
    assert_eq!(scene.refusal(Look { session: node }).await, Refusal::Stale);
}

/// Only a session without a baton counts as a help, and only while nothing waits long.
pub async fn a_beat_tells_whether_others_without_a_baton_work_a_queue(scene: &mut Scene) {
    let holder = scene.node().await;
    scene.take(holder).await;
    assert!(!scene.helped(holder).await, "the only worker holds the baton itself");
    let client = scene.a_join(Kind::Client, Vec::new());
    scene.ask(client).await.unwrap();
    assert!(!scene.helped(holder).await, "a visitor is no help");
    let second = Join { queues: vec![queue(), queue()], ..scene.a_join(Kind::Node, vec![offer("s2")]) };
    let other = second.session;
    scene.ask(second).await.unwrap();
    assert!(scene.helped(holder).await);
    let taken = scene.ask(baton::store::Take { session: other, source: name("s2") }).await.unwrap();
    assert!(!scene.helped(holder).await, "it generates too");
    scene.ask(Resign { session: other, source: name("s2"), epoch: taken.epoch }).await.unwrap();
    assert!(scene.helped(holder).await);
    scene.fill(holder, 1).await;
    scene.live(400, &[holder, other]).await;
    assert!(scene.helped(holder).await);
    scene.live(200, &[holder, other]).await;
    assert!(!scene.helped(holder).await, "the front has waited too long");
    scene.finish(holder, 1, Outcome::Retry { after_ms: 0, error: String::new() }).await;
    assert!(scene.helped(holder).await);
    scene.live(600, &[holder, other]).await;
    assert!(!scene.helped(holder).await, "what is due has waited too long");
    scene.finish(holder, 1, Outcome::DONE).await;
    assert!(scene.helped(holder).await);
    scene.leave(other).await;
    assert!(!scene.helped(holder).await);
}
