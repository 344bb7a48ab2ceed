//! Looking, removing, and requests that break the rules.

use baton::{
    Key, MessageId,
    store::{
        Claim, Destroy, Kind, Peek, Place, Progress, Push, ReadBookmark, ReadProgress, ReadResult, Recount, Refusal,
        RemovalBegin, Removed, Settle, Submit,
        message::{Outcome, Submission},
    },
};
use bytes::Bytes;

use super::scene::{Scene, dead, keyed, name, parcel, queue, range, run, submission};

/// Looking at a store makes nothing in it.
pub async fn an_unused_store_is_empty(scene: &mut Scene) {
    for _ in 0..2 {
        let survey = scene.survey().await;
        assert_eq!((survey.sessions.len(), survey.sources.len(), survey.queues.len()), (0, 0, 0));
        assert_eq!(survey.now_ms, scene.subject.now());
        assert_eq!(scene.ask(Recount { max_hold_ms: 1_000 }).await.unwrap().queues, []);
        assert_eq!(scene.peek(0, 9).await, []);
        assert_eq!(scene.ask(ReadResult { queue: queue(), id: MessageId(1) }).await.unwrap(), None);
        let key = Key::new("k").unwrap();
        assert_eq!(scene.ask(ReadBookmark { key }).await.unwrap(), Place::START);
    }
}

/// However many there are, all are told, and one of them by itself as it is among them.
pub async fn a_survey_tells_of_many_and_progress_of_one(scene: &mut Scene) {
    let node = scene.node().await;
    let submissions =
        (0..900).map(|nth| Submission { queue: name(&format!("q{nth:03}")), ..submission(parcel(1)) }).collect();
    let submit = scene.a_submit(node, submissions);
    scene.ask(submit).await.unwrap();
    let progress = async |scene: &Scene, queue: &str, source: Option<&str>| {
        let asked = ReadProgress { queue: name(queue), source: source.map(name) };
        scene.ask(asked).await.unwrap()
    };
    assert!(!progress(scene, "q007", Some("s")).await.ended);
    let taken = scene.take(node).await;
    let push = Push { end: true, ..Scene::a_push(node, &taken, 2) };
    scene.push(push).await.unwrap();
    let survey = scene.survey().await;
    assert_eq!((survey.sessions.len(), survey.sources.len()), (1, 1));
    assert!(survey.queues.is_sorted_by(|a, b| a.queue < b.queue));
    assert_eq!(survey.queues.iter().map(|books| books.pushed).sum::<u64>(), 902);
    let one = survey.queues.iter().find(|books| books.queue == name("q007")).cloned();
    assert!(one.is_some());
    assert_eq!(progress(scene, "q007", Some("s")).await, Progress { books: one, due_ms: None, ended: true });
    assert_eq!(progress(scene, "nobody", None).await, Progress { books: None, due_ms: None, ended: false });
}

/// Whoever waits for the end of the work hears when it goes on.
pub async fn progress_tells_when_the_first_delayed_message_is_due(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 3).await;
    let ask = async |scene: &Scene| scene.ask(ReadProgress { queue: queue(), source: None }).await.unwrap().due_ms;
    assert_eq!(ask(scene).await, None);
    let mut due = Vec::new();
    for after_ms in [3_600_000, 70_000] {
        scene.finish(node, 1, Outcome::Retry { after_ms, error: String::new() }).await;
        due.push(scene.survey().await.now_ms + after_ms);
        assert_eq!(ask(scene).await, due.last().copied());
    }
}

/// Everything goes, and ids begin again.
pub async fn a_destruction_needs_all_nodes_gone(scene: &mut Scene) {
    let (node, other) = (scene.node().await, scene.node().await);
    scene.fill(node, 40).await;
    scene.finish(node, 3, dead("no")).await;
    scene.finish(node, 3, Outcome::Retry { after_ms: 9_999, error: String::new() }).await;
    scene.claim(node, 3).await;
    let submit = scene.a_submit(node, vec![keyed("k", "1")]);
    scene.ask(submit).await.unwrap();
    assert_eq!(scene.refusal(Destroy).await, Refusal::NodesAlive { nodes: 2 });
    assert_eq!(scene.books().await.pushed, 41);
    scene.leave(node).await;
    let client = scene.a_join(Kind::Client, Vec::new());
    scene.ask(client.clone()).await.unwrap();
    assert_eq!(scene.lose(client.session, other).await.counts(), Some((0, 0)));
    assert_eq!(scene.ask(Destroy).await.unwrap(), Some(Removed { queues: 1, messages: 38, errors: 3 }));
    assert_eq!(scene.ask(Destroy).await.unwrap(), None, "it was removed by the other");
    assert_eq!(scene.refusal(RemovalBegin { session: client.session, queue: queue() }).await, Refusal::Stale);
    an_unused_store_is_empty(scene).await;
    let node = scene.node().await;
    assert_eq!(scene.fill(node, 1).await, 1);
    let submit = scene.a_submit(node, vec![keyed("k", "2")]);
    assert_eq!(scene.ask(submit).await.unwrap().submissions.len(), 1);
    assert_eq!(scene.books().await.pushed, 2, "the key is forgotten too");
}

/// A bug in a caller meets a refusal, not a store in disorder.
pub async fn malformed_requests_change_nothing(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 3).await;
    scene.claim(node, 3).await;
    let before = scene.survey().await;
    let claim = scene.a_claim(node, 1);
    for bad in [Claim { n: 0, ..claim.clone() }, Claim { n: 70_000, ..claim.clone() }, Claim { claim_no: 0, ..claim }] {
        assert!(matches!(scene.refusal(bad).await, Refusal::Malformed(_)));
    }
    let submit = scene.a_submit(node, vec![submission(parcel(1))]);
    let two = baton::store::message::Submission { parcel: parcel(2), ..keyed("k", "1") };
    for submissions in [vec![two], vec![submission(parcel(1)); 1025]] {
        assert!(matches!(scene.refusal(Submit { submissions, ..submit.clone() }).await, Refusal::Malformed(_)));
    }
    let with_result = Outcome::Done { result: Some(Bytes::from_static(b"1")), follow_ups: Vec::new() };
    for bad in
        [run(1, range(1, 0), Outcome::DONE), run(1, range(1, 2), with_result), run(1, range(0, 1), Outcome::DONE)]
    {
        let settle = Settle { session: node, settle_no: 1, runs: vec![bad], max_results: baton::store::MAX_RESULTS };
        assert!(matches!(scene.refusal(settle).await, Refusal::Malformed(_)));
    }
    let none = Peek { queue: queue(), after: 9, upto: 3, limit: 9, max_bytes: 9 };
    assert_eq!(scene.ask(none).await.unwrap().errors, []);
    assert_eq!(scene.survey().await, before);
}
