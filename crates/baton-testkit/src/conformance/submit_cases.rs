//! Messages from outside: numbers, keys, bookmarks, bounds.

use baton::{
    Key,
    store::{
        KEY_TTL_MS, MAX_KEY_TTL_MS, MoveBookmark, Place, ReadBookmark, Refusal, SUBMIT_WINDOW, SubmissionVerdict,
        Submit,
        message::{Digest, Outcome, Submission, SubmissionKey},
    },
};

use super::scene::{Scene, keyed, name, parcel, queue, run, submission};

/// Each number executes once; the last answers are kept for as many as may be under way.
pub async fn submits_are_serial_and_repeat_their_answers(scene: &mut Scene) {
    let node = scene.node().await;
    let submit = scene.a_submit(node, vec![submission(parcel(2)), submission(parcel(3))]);
    let early = Submit { submit_no: 2, ..submit.clone() };
    assert_eq!(scene.refusal(early).await, Refusal::OutOfTurn { last: 0 });
    let answer = scene.ask(submit.clone()).await.unwrap();
    assert_eq!(answer.submissions, [SubmissionVerdict::Stored { first: 1 }, SubmissionVerdict::Stored { first: 3 }]);
    for _ in 1..SUBMIT_WINDOW {
        scene.fill(node, 1).await;
    }
    assert_eq!(scene.ask(submit.clone()).await.unwrap(), answer, "as old as may be under way");
    scene.fill(node, 1).await;
    assert_eq!(scene.refusal(submit.clone()).await, Refusal::OutOfTurn { last: SUBMIT_WINDOW + 1 });
    let zero = Submit { submit_no: 0, ..submit };
    assert_eq!(scene.refusal(zero).await, Refusal::OutOfTurn { last: SUBMIT_WINDOW + 1 });
    assert_eq!(scene.books().await.pushed, 5 + SUBMIT_WINDOW);
}

/// A number may stand for nothing: it is used, and what comes late under it is nothing too.
pub async fn a_submit_of_nothing_uses_its_number(scene: &mut Scene) {
    let node = scene.node().await;
    let nothing = scene.a_submit(node, Vec::new());
    assert_eq!(scene.ask(nothing.clone()).await.unwrap().submissions, []);
    let late = Submit { submissions: vec![submission(parcel(2))], ..nothing };
    assert_eq!(scene.ask(late).await.unwrap().submissions, []);
    assert_eq!(scene.fill(node, 1).await, 1);
}

/// The same key is the same message until it expires; with another body it is a mistake.
pub async fn a_key_is_one_message_for_a_day(scene: &mut Scene) {
    let node = scene.node().await;
    let both = scene.a_submit(node, vec![keyed("k", "1"), submission(parcel(2)), keyed("k", "1"), keyed("k", "2")]);
    let submissions = scene.ask(both).await.unwrap().submissions;
    let stored = |first| SubmissionVerdict::Stored { first };
    assert_eq!(
        submissions,
        [stored(1), stored(2), SubmissionVerdict::Duplicate { first: 1 }, SubmissionVerdict::Conflict]
    );
    scene.subject.pass(KEY_TTL_MS - 1).await;
    let again = scene.a_submit(node, vec![keyed("k", "1")]);
    assert_eq!(scene.ask(again).await.unwrap().submissions, [SubmissionVerdict::Duplicate { first: 1 }]);
    scene.subject.pass(1).await;
    let anew = scene.a_submit(node, vec![keyed("k", "2"), keyed("k", "1")]);
    assert_eq!(scene.ask(anew).await.unwrap().submissions, [stored(4), SubmissionVerdict::Conflict]);
}

/// A key stands for a message of one queue: for another one it is a mistake, not a duplicate.
pub async fn a_key_is_bound_to_its_queue(scene: &mut Scene) {
    let node = scene.node().await;
    let elsewhere = Submission { queue: name("elsewhere"), ..keyed("k", "1") };
    let both = scene.a_submit(node, vec![keyed("k", "1"), elsewhere, keyed("k", "1")]);
    let submissions = scene.ask(both).await.unwrap().submissions;
    assert_eq!(
        submissions,
        [
            SubmissionVerdict::Stored { first: 1 },
            SubmissionVerdict::Conflict,
            SubmissionVerdict::Duplicate { first: 1 }
        ]
    );
}

/// At the bound new keys are refused; those kept stay, and unkeyed messages pass.
pub async fn keys_are_bounded_and_none_is_dropped(scene: &mut Scene) {
    let node = scene.node().await;
    let submissions = vec![keyed("a", "1"), keyed("b", "1"), keyed("c", "1"), submission(parcel(1)), keyed("a", "1")];
    let submit = Submit { max_keys: 2, ..scene.a_submit(node, submissions) };
    let (stored, duplicate) = (|first| SubmissionVerdict::Stored { first }, SubmissionVerdict::Duplicate { first: 1 });
    let verdicts = scene.ask(submit).await.unwrap().submissions;
    assert_eq!(verdicts, [stored(1), stored(2), SubmissionVerdict::KeysFull, stored(3), duplicate]);
    scene.subject.pass(KEY_TTL_MS).await;
    let later = Submit { max_keys: 2, ..scene.a_submit(node, vec![keyed("c", "1")]) };
    assert_eq!(scene.ask(later).await.unwrap().submissions, [stored(4)], "expired keys make room");
}

/// Each for as long as whoever brings it wants, a message from outside or a follow-up.
pub async fn a_key_lives_as_long_as_its_submission_says(scene: &mut Scene) {
    let node = scene.node().await;
    let living = |key: &str, lives_ms| {
        let submission = keyed(key, "1");
        Submission { key: submission.key.map(|key| SubmissionKey { lives_ms, ..key }), ..submission }
    };
    let verdicts = async |scene: &mut Scene| {
        let again = scene.a_submit(node, vec![keyed("short", "1"), keyed("long", "1"), keyed("follow", "1")]);
        scene.ask(again).await.unwrap().submissions
    };
    let first = scene.a_submit(node, vec![living("short", 500), living("long", MAX_KEY_TTL_MS)]);
    for bad in [0, MAX_KEY_TTL_MS + 1] {
        let refused = Submit { submissions: vec![living("k", bad)], ..first.clone() };
        assert_eq!(scene.refusal(refused).await, Refusal::Malformed("a key lives for a millisecond to 366 days"));
    }
    scene.ask(first).await.unwrap();
    let (claim_no, spans) = scene.claim(node, 1).await;
    let done = Outcome::Done { result: None, follow_ups: vec![living("follow", 500)] };
    scene.settle(node, vec![run(claim_no, spans[0].0.range, done)]).await;
    let (duplicate, stored) =
        (|first| SubmissionVerdict::Duplicate { first }, |first| SubmissionVerdict::Stored { first });
    scene.subject.pass(499).await;
    assert_eq!(verdicts(scene).await, [duplicate(1), duplicate(2), duplicate(3)]);
    scene.subject.pass(1).await;
    assert_eq!(verdicts(scene).await, [stored(4), duplicate(2), stored(5)]);
    scene.subject.pass(KEY_TTL_MS).await;
    assert_eq!(verdicts(scene).await, [stored(6), duplicate(2), stored(7)]);
}

/// However many of them there are, and however many new ones come at once: those go faster than these come.
/// `BATON_KEYS` makes it as large as wanted.
pub async fn expired_keys_do_not_count(scene: &mut Scene) {
    let node = scene.node().await;
    let all: usize = std::env::var("BATON_KEYS").ok().and_then(|keys| keys.parse().ok()).unwrap_or(900);
    let (max_keys, some) = (all as u64, all.min(30_000) / 3);
    let submit = async |scene: &mut Scene, series: &str, count: usize, at_once: usize, max_keys: u64| {
        let keys: Vec<Submission> = (0..count).map(|nth| keyed(&format!("{series}{nth}"), "1")).collect();
        let mut stored = 0;
        for submissions in keys.chunks(at_once) {
            let submit = Submit { max_keys, ..scene.a_submit(node, submissions.to_vec()) };
            let verdicts = scene.ask(submit).await.unwrap().submissions;
            stored += verdicts.iter().filter(|verdict| matches!(verdict, SubmissionVerdict::Stored { .. })).count();
        }
        stored
    };
    assert_eq!(submit(scene, "old", all, 1_024, max_keys).await, all);
    assert_eq!(submit(scene, "more", 3, 1, max_keys).await, 0, "all of them live");
    scene.subject.pass(KEY_TTL_MS).await;
    assert_eq!(submit(scene, "few", 5, 5, 10).await, 5, "also if fewer may be kept than before");
    assert_eq!(submit(scene, "many", some, 300, max_keys).await, some, "many at once");
    assert_eq!(submit(scene, "one", some, 1, max_keys).await, some, "one by one");
    assert_eq!(submit(scene, "many", some, 300, max_keys).await, 0, "what came since is known");
}

/// Lines taken and their digest move in the step that stores them.
pub async fn a_bookmark_moves_with_its_submissions(scene: &mut Scene) {
    let node = scene.node().await;
    let key = Key::new("file.ndjson").unwrap();
    let read = ReadBookmark { key: key.clone() };
    assert_eq!(scene.ask(read.clone()).await.unwrap(), Place::START);
    let to = Place { lines: 3, digest: Digest::of(b"three lines") };
    let mark = MoveBookmark { key: key.clone(), from: Place::START, to };
    let first = Submit { bookmark: Some(mark.clone()), ..scene.a_submit(node, vec![submission(parcel(3))]) };
    scene.ask(first.clone()).await.unwrap();
    assert_eq!(scene.ask(read.clone()).await.unwrap(), to);
    scene.ask(first.clone()).await.unwrap();
    // A second run from the start, under a number of its own, is told where the first one got to.
    let rerun = Submit { submit_no: 2, ..first };
    assert_eq!(scene.refusal(rerun).await, Refusal::Bookmark { lines: 3, digest: to.digest });
    let other = Place { lines: 3, digest: Digest::of(b"three other lines") };
    let wrong = MoveBookmark { from: other, to: Place { lines: 4, ..to }, key };
    let wrong = Submit { submit_no: 2, bookmark: Some(wrong), ..scene.a_submit(node, vec![submission(parcel(1))]) };
    assert_eq!(scene.refusal(wrong).await, Refusal::Bookmark { lines: 3, digest: to.digest });
    assert_eq!((scene.books().await.pushed, scene.ask(read).await.unwrap()), (3, to));
}

/// Each submission is judged alone, in order; a bookmark goes with all of its submissions or with none.
pub async fn a_full_queue_refuses_each_submission_or_the_bookmark(scene: &mut Scene) {
    let node = scene.node().await;
    let bound = 2 * parcel(10).bytes().len() as u64;
    let elsewhere = baton::store::message::Submission { queue: name("other"), ..submission(parcel(1)) };
    let submissions = vec![submission(parcel(10)), submission(parcel(11)), submission(parcel(1)), elsewhere.clone()];
    let submit = Submit { max_queue_bytes: bound, ..scene.a_submit(node, submissions) };
    let verdicts = scene.ask(submit).await.unwrap().submissions;
    let stored = SubmissionVerdict::Stored { first: 1 };
    assert_eq!(
        verdicts,
        [stored, SubmissionVerdict::Full, SubmissionVerdict::Full, stored],
        "what follows a full submission waits too"
    );
    let mark = MoveBookmark {
        key: Key::new("k").unwrap(),
        from: Place::START,
        to: Place { lines: 1, digest: Digest::of(b"x") },
    };
    let submissions = vec![elsewhere, submission(parcel(11))];
    let submit = Submit { max_queue_bytes: bound, bookmark: Some(mark), ..scene.a_submit(node, submissions) };
    let bytes = parcel(10).bytes().len() as u64;
    assert_eq!(scene.refusal(submit.clone()).await, Refusal::Full { queue: queue(), bytes });
    let books: Vec<u64> = scene.survey().await.queues.iter().map(|books| books.pushed).collect();
    assert_eq!(books, [1, 10]);
    // The number was not used: it goes through as it is once there is room.
    scene.ask(Submit { max_queue_bytes: 1 << 20, ..submit }).await.unwrap();
    assert_eq!(scene.books().await.pushed, 21);
}
