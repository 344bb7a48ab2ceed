//! What waits in a queue is removed, and a queue is forgotten.

use baton::{
    Key, MessageId, Name, SessionId,
    store::{
        Books, CallState, Kind, MoveBookmark, Order, Place, Purge, Purged, ReadBookmark, ReadResult, Refusal,
        RemoveQueue, SubmissionVerdict, Submit,
        message::{Digest, Outcome, Submission},
    },
};

use super::{
    call_scene::{a_call, done, retry, stored},
    scene::{Scene, dead, keyed, parcel, queue, range, run, submission},
};

impl Scene {
    fn a_purge(&mut self, session: SessionId, upto: Option<u64>, failed: bool) -> Purge {
        Purge { session, dispose_no: self.next(session, "dispose"), queue: queue(), upto, failed }
    }

    /// Purges in one step.
    async fn purge(&mut self, session: SessionId) -> u64 {
        let purge = self.a_purge(session, None, false);
        let purged = self.ask(purge).await.unwrap();
        assert!(!purged.left, "{purged:?}");
        purged.removed
    }

    async fn client(&mut self) -> SessionId {
        let join = self.a_join(Kind::Client, Vec::new());
        let session = join.session;
        self.ask(join).await.unwrap();
        session
    }
}

/// Ready, delayed and suspect messages go, also those whose parcel is in part in flight or has failed in part.
pub async fn a_purge_removes_what_waits_and_nothing_else(scene: &mut Scene) {
    let node = scene.node().await;
    assert_eq!(scene.purge(node).await, 0, "of a queue that is not known");
    scene.fill(node, 12).await;
    scene.finish(node, 2, retry(60_000)).await;
    scene.finish(node, 1, dead("failed")).await;
    scene.finish(node, 1, Outcome::DONE).await;
    let (claim_no, held) = scene.claim(node, 3).await;
    for _ in 0..7 {
        scene.fill(node, 1).await;
    }
    assert_eq!(scene.purge(node).await, 2 + 5 + 7);
    scene.balanced().await;
    let books = scene.books().await;
    assert_eq!((books.ready, books.delayed, books.in_flight, books.failed, books.removed), (0, 0, 3, 1, 14));
    assert!(books.bytes > 0, "what is in flight counts still");
    scene.settle(node, held.iter().map(|(span, _)| run(claim_no, span.range, Outcome::DONE)).collect()).await;
    let books = scene.books().await;
    assert_eq!((books.done, books.bytes), (4, 0));
    assert_eq!(scene.claim(node, 9).await.1, []);
    assert_eq!(scene.fill(node, 1).await, 20, "ids go on");
    scene.balanced().await;
    // Suspects: what two sessions died with.
    for _ in 0..2 {
        let other = scene.node().await;
        scene.claim(other, 1).await;
        scene.lose(node, other).await;
    }
    assert_eq!(scene.purge(node).await, 1);
    let books = scene.books().await;
    assert_eq!((books.ready, books.bytes), (0, 0));
}

/// A reply that was lost, and numbers that are another's.
pub async fn a_repeated_purge_removes_once(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 3).await;
    let early = Purge { session: node, dispose_no: 2, queue: queue(), upto: None, failed: false };
    assert_eq!(scene.refusal(early).await, Refusal::OutOfTurn { last: 0 });
    let purge = scene.a_purge(node, None, false);
    let once = scene.ask(purge.clone()).await.unwrap();
    assert_eq!(once, Purged { removed: 3, failed: 0, upto: 3, left: false });
    scene.fill(node, 2).await;
    assert_eq!(scene.ask(purge).await.unwrap(), once);
    assert_eq!((scene.books().await.ready, scene.books().await.removed), (2, 3));
    let disposal = baton::store::Dispose {
        session: node,
        dispose_no: 1,
        queue: queue(),
        ids: vec![MessageId(1)],
        disposal: baton::store::Disposal::Remove,
    };
    assert_eq!(scene.refusal(disposal).await, Refusal::OutOfTurn { last: 1 });
}

/// Steps are bounded; each leaves balanced books; what is pushed after the first stays; two may purge at once.
pub async fn a_purge_goes_in_steps(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    for _ in 0..7 {
        let submit = scene.a_submit(one, (0..400).map(|_| submission(parcel(1))).collect());
        scene.ask(submit).await.unwrap();
    }
    scene.finish(one, 300, retry(60_000)).await;
    let (mut removed, mut upto, mut steps) = (0, [None; 2], 0);
    loop {
        let nth = steps % 2;
        let purge = scene.a_purge([one, other][nth], upto[nth], false);
        let step = scene.ask(purge).await.unwrap();
        scene.balanced().await;
        if steps == 0 {
            assert!(step.left && step.removed > 0 && step.removed < 2_800, "{step:?}");
            assert_eq!(step.upto, 2_800);
            scene.fill(one, 5).await;
        }
        removed += step.removed;
        // The second one began after the push.
        upto[nth] = Some(2_800);
        steps += 1;
        if !step.left && steps > 1 {
            break;
        }
    }
    assert!(steps > 2, "{steps} steps");
    let books = scene.books().await;
    assert_eq!(removed, books.removed);
    assert!(books.ready == 5 || books.ready == 0, "{books:?}");
    assert_eq!(books.removed + books.ready, 2_805);
}

/// A follower hears that the call will not run, whether it waited or was delayed.
pub async fn a_purged_call_ends_as_cancelled(scene: &mut Scene) {
    let node = scene.node().await;
    let delayed = scene.begin(node, None).await;
    scene.finish(node, 1, retry(60_000)).await;
    let waits = scene.begin(node, None).await;
    let runs = scene.begin(node, None).await;
    let held = {
        // The first that waits is claimed with the one behind it: the first goes back.
        let (claim_no, spans) = scene.claim(node, 2).await;
        scene.settle(node, vec![run(claim_no, spans[0].0.range, Outcome::Back)]).await;
        (claim_no, spans[1].0.range)
    };
    assert_eq!(scene.purge(node).await, 2);
    for call in [&delayed, &waits] {
        assert_eq!(scene.state(call).await, CallState::Cancelled);
        assert_eq!(scene.events(call, 1).await, [stored("cancelled", "")]);
    }
    scene.settle(node, vec![run(held.0, held.1, done("5"))]).await;
    assert_eq!(scene.state(&runs).await, CallState::Done);
    let books = scene.books().await;
    assert_eq!((books.removed, books.done, books.cancelled, books.bytes), (2, 1, 0, 0));
    let submit = scene.a_submit(node, vec![a_call(None)]);
    scene.ask(submit).await.unwrap();
}

/// Failed messages go only if they are meant, and not while somebody else removes them.
pub async fn a_purge_removes_failed_messages_if_asked(scene: &mut Scene) {
    let (node, other) = (scene.node().await, scene.node().await);
    scene.fill(node, 5).await;
    scene.finish(node, 2, dead("failed")).await;
    scene.drain(other).await;
    let refused = Purge { session: node, dispose_no: 1, queue: queue(), upto: None, failed: true };
    assert_eq!(scene.refusal(refused).await, Refusal::RemovalBusy { holder: other });
    assert_eq!(scene.books().await.ready, 3);
    scene.leave(other).await;
    let purge = scene.a_purge(node, None, true);
    let purged = scene.ask(purge).await.unwrap();
    assert_eq!(purged, Purged { removed: 5, failed: 2, upto: 5, left: false });
    assert_eq!(scene.peek(0, 9).await, []);
    let books = scene.books().await;
    assert_eq!((books.failed, books.removed, books.removed_sum.value()), (0, 5, 15));
}

/// A bookmark goes with the queue that its lines went to, and with no other.
pub async fn the_bookmarks_of_a_removed_queue_are_forgotten(scene: &mut Scene) {
    let client = scene.client().await;
    let to = Place { lines: 1, digest: Digest::of(b"a line") };
    let elsewhere = Name::new("elsewhere").unwrap();
    for (submit_no, (of, key)) in (1..).zip([(queue(), "here"), (elsewhere.clone(), "there")]) {
        let bookmark = Some(MoveBookmark { key: Key::new(key).unwrap(), from: Place::START, to });
        let submission = Submission { queue: of, ..submission(parcel(1)) };
        let submit = Submit { submit_no, bookmark, ..scene.a_submit(client, vec![submission]) };
        scene.ask(submit).await.unwrap();
    }
    assert_eq!(scene.purge(client).await, 1);
    scene.ask(RemoveQueue { queue: queue() }).await.unwrap();
    for (key, stands) in [("here", Place::START), ("there", to)] {
        assert_eq!(scene.ask(ReadBookmark { key: Key::new(key).unwrap() }).await.unwrap(), stands, "{key}");
    }
}

/// Nothing is left of it but its last id.
pub async fn a_removed_queue_is_forgotten_and_its_ids_go_on(scene: &mut Scene) {
    let node = scene.node().await;
    let submit = scene.a_submit(node, vec![keyed("k", "{}"), keyed("l", "{}")]);
    scene.ask(submit).await.unwrap();
    scene.finish(node, 1, done("5")).await;
    scene.finish(node, 1, dead("failed")).await;
    scene.fill(node, 3).await;
    scene.claim(node, 1).await;
    let remove = RemoveQueue { queue: queue() };
    let in_use = scene.refusal(remove.clone()).await;
    assert_eq!(in_use, Refusal::QueueInUse { queue: queue(), session: node });
    scene.leave(node).await;
    let client = scene.client().await;
    let full = scene.refusal(remove.clone()).await;
    assert_eq!(full, Refusal::QueueNotEmpty { queue: queue(), messages: 4 });
    assert_eq!(scene.ask(ReadResult { queue: queue(), id: MessageId(1) }).await.unwrap().unwrap(), "5");
    scene.ask(Order::Pause(queue())).await.unwrap();
    let purge = scene.a_purge(client, None, true);
    assert_eq!(scene.ask(purge).await.unwrap().removed, 4);
    for _ in 0..2 {
        scene.ask(remove.clone()).await.unwrap();
        assert_eq!(scene.survey().await.queues, []);
        scene.balanced().await;
    }
    assert_eq!(scene.ask(ReadResult { queue: queue(), id: MessageId(1) }).await.unwrap(), None);
    // The name is used again: not paused, its keys free, ids behind the last one.
    let submit = scene.a_submit(client, vec![keyed("k", "{}")]);
    assert_eq!(scene.ask(submit).await.unwrap().submissions, [SubmissionVerdict::Stored { first: 6 }]);
    scene.balanced().await;
    let books = scene.books().await;
    let want = Books { pushed: 6, ready: 1, removed: 5, removed_sum: books.removed_sum, ..Books::new(queue()) };
    assert_eq!(Books { bytes: 0, ..books }, want);
    assert_eq!(scene.purge(client).await, 1);
    scene.ask(remove).await.unwrap();
    assert_eq!(scene.fill(client, 2).await, 7);
    let (_, spans) = scene.claim(client, 9).await;
    assert_eq!(spans.iter().map(|(span, _)| span.range).collect::<Vec<_>>(), [range(7, 2)]);
}
