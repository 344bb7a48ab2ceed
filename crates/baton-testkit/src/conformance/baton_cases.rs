//! Batons: one holder, growing epochs, cursors that stay.

use baton::store::{Kind, Offer, Push, Refusal, Remove, Resign, Rewind, Take, message::Digest};

use super::scene::{Scene, name, offer, queue};

/// The second comes away empty-handed and is told who was first.
pub async fn one_session_holds_a_baton(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    assert_eq!(scene.beat(one).await.unwrap().due, [name("s")]);
    let taken = scene.take(one).await;
    assert_eq!((taken.cursor.as_str(), taken.batch_no), ("", 0));
    assert_eq!(taken.epoch, scene.subject.now(), "the store's time");
    assert_eq!(scene.beat(one).await.unwrap().held, [(name("s"), taken.epoch)]);
    assert_eq!(scene.beat(other).await.unwrap().due, []);
    let refusal = scene.refusal(Take { session: other, source: name("s") }).await;
    assert_eq!(refusal, Refusal::BatonHeld { source_name: name("s"), holder: one });
    let refusal = scene.refusal(Take { session: other, source: name("unknown") }).await;
    assert_eq!(refusal, Refusal::NotOffered { source_name: name("unknown") });
    assert_eq!(scene.survey().await.sources[0].holder, Some(one));
}

/// A take whose reply was lost is repeated, also after a push.
pub async fn the_holder_takes_the_same_epoch_again(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    scene.push(Scene::a_push(node, &taken, 3)).await.unwrap();
    scene.subject.pass(50).await;
    let again = scene.take(node).await;
    assert_eq!((again.epoch, again.cursor.as_str(), again.batch_no), (taken.epoch, "3", 1));
}

/// The successor goes on where the last push left off.
pub async fn a_lost_holder_frees_the_baton(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    let first = scene.take(one).await;
    scene.push(Scene::a_push(one, &first, 3)).await.unwrap();
    scene.live(900, &[other]).await;
    assert_eq!(scene.beat(other).await.unwrap().due, [], "its lease is the baton's");
    scene.lose(other, one).await;
    assert_eq!(scene.beat(other).await.unwrap().due, [name("s")]);
    let next = scene.take(other).await;
    assert_eq!((next.cursor.as_str(), next.batch_no), ("3", 0));
    assert!(next.epoch > first.epoch);
}

/// Leaving frees at once.
pub async fn a_holder_that_left_frees_the_baton(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    scene.take(one).await;
    scene.leave(one).await;
    assert_eq!(scene.survey().await.sources[0].holder, None);
    assert_eq!(scene.beat(other).await.unwrap().due, [name("s")]);
    scene.take(other).await;
}

/// A resignation from the past must not take the baton from its present holder.
pub async fn resigning_an_old_epoch_does_nothing(scene: &mut Scene) {
    let node = scene.node().await;
    let old = scene.take(node).await;
    let resign = Resign { session: node, source: name("s"), epoch: old.epoch };
    scene.ask(resign.clone()).await.unwrap();
    let new = scene.take(node).await;
    assert!(new.epoch > old.epoch);
    scene.ask(resign).await.unwrap();
    assert_eq!(scene.beat(node).await.unwrap().held, [(name("s"), new.epoch)]);
}

/// Epochs are ordered whatever the clock says.
pub async fn epochs_grow_when_the_clock_goes_back(scene: &mut Scene) {
    let node = scene.node().await;
    let mut last = 0;
    for hour in 0..3 {
        scene.subject.set_time(scene.subject.now() - hour * 3_600_000).await;
        let taken = scene.take(node).await;
        assert!(taken.epoch > last);
        last = taken.epoch;
        scene.ask(Resign { session: node, source: name("s"), epoch: last }).await.unwrap();
    }
}

/// Two sources under one name would mix up their cursors.
pub async fn another_definition_is_refused(scene: &mut Scene) {
    scene.node().await;
    let other = Offer { definition: Digest::of(b"another source"), ..offer("s") };
    let elsewhere = Offer { queue: name("elsewhere"), ..offer("s") };
    for bad in [other.clone(), elsewhere] {
        let join = scene.a_join(Kind::Node, vec![offer("t"), bad]);
        assert_eq!(scene.refusal(join).await, Refusal::Definition { source_name: name("s") });
    }
    let survey = scene.survey().await;
    assert_eq!((survey.sessions.len(), survey.sources.len()), (1, 1), "a refused join leaves nothing");
    scene.ask(Rewind { source: name("s"), goes_on: false }).await.unwrap();
    let join = scene.a_join(Kind::Node, vec![other]);
    scene.ask(join).await.unwrap();
}

/// A new expression or another queue, once whoever offered the old one is gone: the cursor stays.
pub async fn an_adopting_source_takes_a_new_definition_at_its_cursor(scene: &mut Scene) {
    let first = scene.node().await;
    let old = scene.take(first).await;
    scene.push(Scene::a_push(first, &old, 3)).await.unwrap();
    scene.leave(first).await;
    let elsewhere = name("elsewhere");
    let new = Offer { queue: elsewhere.clone(), definition: Digest::of(b"new"), adopts: true, ..offer("s") };
    let rigid = scene.a_join(Kind::Node, vec![Offer { adopts: false, ..new.clone() }]);
    assert_eq!(scene.refusal(rigid).await, Refusal::Definition { source_name: name("s") });
    let join = scene.a_join(Kind::Node, vec![new]);
    let second = join.session;
    scene.ask(join.clone()).await.unwrap();
    assert_eq!(scene.ask(join).await.unwrap().join_no, 2, "a repeat is answered the same");
    assert_eq!(scene.beat(second).await.unwrap().due, [name("s")]);
    let taken = scene.take(second).await;
    assert_eq!(taken.cursor, "3");
    assert!(taken.epoch > old.epoch);
    scene.push(Scene::a_push(second, &taken, 2)).await.unwrap();
    let survey = scene.survey().await;
    assert_eq!(survey.sources[0].queue, elsewhere);
    let fed = survey.queues.iter().find(|books| books.queue == elsewhere).unwrap();
    assert_eq!((fed.pushed, scene.books().await.pushed), (2, 3), "from here on it feeds the other queue");
}

/// Two nodes that mean different things by one name would take turns at one cursor.
pub async fn two_live_definitions_are_refused(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    let new = Offer { definition: Digest::of(b"new"), adopts: true, ..offer("s") };
    let in_use = |session| Refusal::DefinitionInUse { source_name: name("s"), session };
    let join = scene.a_join(Kind::Node, vec![new.clone()]);
    assert_eq!(scene.refusal(join).await, in_use(one));
    scene.leave(one).await;
    let join = scene.a_join(Kind::Node, vec![new.clone()]);
    assert_eq!(scene.refusal(join).await, in_use(other));
    let watcher = scene.a_join(Kind::Client, vec![]);
    let by = watcher.session;
    scene.ask(watcher).await.unwrap();
    scene.lose(by, other).await;
    let join = scene.a_join(Kind::Node, vec![new.clone()]);
    scene.ask(join).await.unwrap();
    let same = scene.a_join(Kind::Node, vec![new]);
    scene.ask(same).await.unwrap();
    let back = scene.a_join(Kind::Node, vec![offer("s")]);
    assert_eq!(scene.refusal(back).await, Refusal::Definition { source_name: name("s") });
    let doubled = scene.a_join(Kind::Node, vec![offer("t"), offer("t")]);
    assert_eq!(scene.refusal(doubled).await, Refusal::Malformed("a session offers a source once"));
}

/// What it pushed stays; under its name the next source begins at the start.
pub async fn a_source_is_removed_once_nobody_offers_it(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    scene.push(Push { end: true, ..Scene::a_push(node, &taken, 2) }).await.unwrap();
    let remove = Remove { source: name("s") };
    let offered = Refusal::Offered { source_name: name("s"), session: node };
    assert_eq!(scene.refusal(remove.clone()).await, offered, "held");
    scene.ask(Resign { session: node, source: name("s"), epoch: taken.epoch }).await.unwrap();
    assert_eq!(scene.refusal(remove.clone()).await, offered, "offered");
    scene.leave(node).await;
    for _ in 0..2 {
        scene.ask(remove.clone()).await.unwrap();
        assert_eq!(scene.survey().await.sources, []);
    }
    assert_eq!(scene.books().await.ready, 2);
    let join = scene.a_join(Kind::Node, vec![Offer { definition: Digest::of(b"another source"), ..offer("s") }]);
    let node = join.session;
    scene.ask(join).await.unwrap();
    assert_eq!(scene.take(node).await.cursor, "");
}

/// A visitor runs nothing.
pub async fn a_client_is_never_given_a_baton(scene: &mut Scene) {
    let join = scene.a_join(Kind::Client, vec![offer("s")]);
    let client = join.session;
    scene.ask(join).await.unwrap();
    assert_eq!(scene.beat(client).await.unwrap().due, []);
    let refusal = scene.refusal(Take { session: client, source: name("s") }).await;
    assert_eq!(refusal, Refusal::NotOffered { source_name: name("s") });
}

/// Of however many sources there are: what it offers is due or held, in the order of names.
pub async fn a_beat_tells_of_what_its_session_offers_and_nothing_else(scene: &mut Scene) {
    let all: Vec<Offer> = (0..40).map(|nth| offer(&format!("s{nth:02}"))).collect();
    let (some, other) = (vec![all[20].clone(), all[3].clone(), all[31].clone()], all[5].clone());
    let join = scene.a_join(Kind::Node, all);
    let everything = join.session;
    scene.ask(join).await.unwrap();
    let join = scene.a_join(Kind::Node, some);
    let node = join.session;
    scene.ask(join).await.unwrap();
    assert_eq!(scene.beat(node).await.unwrap().due, [name("s03"), name("s20"), name("s31")]);
    let first = scene.ask(Take { session: node, source: name("s31") }).await.unwrap();
    let second = scene.ask(Take { session: node, source: name("s03") }).await.unwrap();
    scene.ask(Take { session: everything, source: name("s20") }).await.unwrap();
    let beaten = scene.beat(node).await.unwrap();
    assert_eq!(beaten.due, [], "the third is another's");
    assert_eq!(beaten.held, [(name("s03"), second.epoch), (name("s31"), first.epoch)]);
    assert_eq!(scene.beat(everything).await.unwrap().due.len(), 37);
    scene.leave(everything).await;
    assert_eq!(scene.beat(node).await.unwrap().due, [name("s20")]);
    scene.ask(Remove { source: other.source }).await.unwrap();
    assert_eq!(scene.beat(node).await.unwrap().due, [name("s20")]);
}

/// The end is part of the cursor.
pub async fn an_ended_source_stays_ended_until_rewound(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    scene.push(Push { end: true, ..Scene::a_push(node, &taken, 2) }).await.unwrap();
    let again = scene.take_refusal(node).await;
    assert_eq!(again, Refusal::Ended { source_name: name("s") });
    scene.ask(Resign { session: node, source: name("s"), epoch: taken.epoch }).await.unwrap();
    assert_eq!(scene.beat(node).await.unwrap().due, []);
    assert!(scene.survey().await.sources[0].ended);
    scene.ask(Rewind { source: name("s"), goes_on: false }).await.unwrap();
    assert_eq!(scene.beat(node).await.unwrap().due, [name("s")]);
    let anew = scene.take(node).await;
    assert_eq!(anew.cursor, "");
    assert!(anew.epoch > taken.epoch);
    scene.push(Scene::a_push(node, &anew, 2)).await.unwrap();
    assert_eq!(scene.books().await.pushed, 4, "ids go on");
}

/// An ended source goes on behind all that it gave; nothing of it comes twice.
pub async fn an_ended_source_goes_on_at_its_cursor(scene: &mut Scene) {
    let node = scene.node().await;
    let on = Rewind { source: name("s"), goes_on: true };
    scene.ask(on.clone()).await.unwrap();
    let taken = scene.take(node).await;
    // Without an end there is nothing to do, whoever holds it.
    scene.ask(on.clone()).await.unwrap();
    let last = Push { end: true, ..Scene::a_push(node, &taken, 2) };
    scene.push(last.clone()).await.unwrap();
    assert_eq!(scene.refusal(on.clone()).await, Refusal::BatonHeld { source_name: name("s"), holder: node });
    scene.ask(Resign { session: node, source: name("s"), epoch: taken.epoch }).await.unwrap();
    for _ in 0..2 {
        scene.ask(on.clone()).await.unwrap();
        assert_eq!(scene.beat(node).await.unwrap().due, [name("s")]);
    }
    // A late copy of the last push neither counts nor ends the source again.
    assert_eq!(scene.refusal(last.clone()).await, Refusal::StaleBaton { source_name: name("s") });
    let again = scene.take(node).await;
    assert_eq!(again.cursor, last.to);
    assert!(again.epoch > taken.epoch);
    assert_eq!(scene.refusal(last).await, Refusal::StaleBaton { source_name: name("s") });
    scene.push(Scene::a_push(node, &again, 3)).await.unwrap();
    assert_eq!(scene.books().await.pushed, 5);
    assert!(!scene.survey().await.sources[0].ended);
    scene.ask(Rewind { source: name("never-heard-of"), goes_on: true }).await.unwrap();
    assert_eq!(scene.survey().await.sources.len(), 1);
}

/// Nothing is pulled from under a running generator.
pub async fn rewinding_needs_no_live_holder(scene: &mut Scene) {
    let node = scene.node().await;
    scene.take(node).await;
    let refusal = scene.refusal(Rewind { source: name("s"), goes_on: false }).await;
    assert_eq!(refusal, Refusal::BatonHeld { source_name: name("s"), holder: node });
    scene.leave(node).await;
    scene.ask(Rewind { source: name("s"), goes_on: false }).await.unwrap();
    scene.ask(Rewind { source: name("never-heard-of"), goes_on: false }).await.unwrap();
    assert_eq!(scene.survey().await.sources.len(), 1);
    assert_eq!(scene.survey().await.sources[0].queue, queue());
}

impl Scene {
    async fn take_refusal(&self, session: baton::SessionId) -> Refusal {
        self.refusal(Take { session, source: name("s") }).await
    }
}
