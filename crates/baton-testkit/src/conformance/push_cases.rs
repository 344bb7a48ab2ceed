//! Pushes of a source under its baton.

use baton::store::{Push, Pushed, Refusal};

use super::scene::{Scene, name, parcel, queue};

/// STALE before DUP before GAP before ended before FULL.
pub async fn pushes_are_checked_in_order(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    let first = Scene::a_push(node, &taken, 3);
    scene.push(first.clone()).await.unwrap();
    let wrong = Push { batch_no: 1, from: "9".to_owned(), end: true, max_queue_bytes: 0, ..first.clone() };
    let stale = Push { epoch: taken.epoch - 1, ..wrong.clone() };
    assert_eq!(scene.refusal(stale).await, Refusal::StaleBaton { source_name: name("s") });
    assert!(scene.push(wrong.clone()).await.unwrap().duplicate);
    let gap = Refusal::Gap { cursor: "3".to_owned(), batch_no: 1 };
    assert_eq!(scene.refusal(Push { batch_no: 2, ..wrong.clone() }).await, gap);
    let full = Push { batch_no: 2, from: "3".to_owned(), ..wrong.clone() };
    assert!(matches!(scene.refusal(full).await, Refusal::Full { .. }));
    let end = Push { batch_no: 2, from: "3".to_owned(), max_queue_bytes: 1 << 20, ..wrong };
    scene.push(end.clone()).await.unwrap();
    let after = Push { batch_no: 3, from: end.to.clone(), max_queue_bytes: 0, ..end };
    assert_eq!(scene.refusal(after).await, Refusal::Ended { source_name: name("s") });
}

/// The reply was lost, not the push.
pub async fn a_repeated_push_is_a_duplicate(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    let push = Push { parcels: vec![parcel(3), parcel(2)], ..Scene::a_push(node, &taken, 5) };
    assert_eq!(scene.push(push.clone()).await.unwrap(), Pushed { firsts: vec![1, 4], duplicate: false });
    for _ in 0..2 {
        assert_eq!(scene.push(push.clone()).await.unwrap(), Pushed { firsts: vec![], duplicate: true });
    }
    assert_eq!(scene.books().await.pushed, 5);
}

/// A sender that ran ahead goes back to where the store stands.
pub async fn a_gap_tells_where_the_source_stands(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    let first = Scene::a_push(node, &taken, 3);
    let second = Push { batch_no: 2, from: "3".to_owned(), to: "5".to_owned(), ..first.clone() };
    let gap = scene.refusal(second.clone()).await;
    assert_eq!(gap, Refusal::Gap { cursor: String::new(), batch_no: 0 });
    scene.push(first).await.unwrap();
    scene.push(second.clone()).await.unwrap();
    let third = Push { batch_no: 4, from: "5".to_owned(), ..second };
    let gap = Refusal::Gap { cursor: "5".to_owned(), batch_no: 2 };
    assert_eq!(scene.refusal(third).await, gap, "the right cursor under the wrong number");
}

/// Back-pressure: nothing of the batch is stored, and it fits once workers have caught up.
pub async fn a_full_queue_refuses_a_push_whole(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    let big = Push { max_queue_bytes: 10, ..Scene::a_push(node, &taken, 50) };
    scene.push(big.clone()).await.unwrap();
    let bytes = scene.books().await.bytes;
    assert_eq!(bytes, parcel(50).bytes().len() as u64, "an empty queue takes one batch of any size");
    let next = Push { batch_no: 2, from: "50".to_owned(), parcels: vec![parcel(1), parcel(1)], ..big };
    assert_eq!(scene.refusal(next.clone()).await, Refusal::Full { queue: queue(), bytes });
    assert_eq!(scene.books().await.pushed, 50);
    assert_eq!(scene.survey().await.sources[0].cursor, "50");
    let room = bytes + 2 * parcel(1).bytes().len() as u64;
    assert!(scene.push(Push { max_queue_bytes: room - 1, ..next.clone() }).await.is_err());
    scene.push(Push { max_queue_bytes: room, ..next }).await.unwrap();
}

/// What a paused generator sends after its successor took over.
pub async fn an_old_baton_is_refused_and_counted(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    let old = scene.take(one).await;
    scene.push(Scene::a_push(one, &old, 2)).await.unwrap();
    let late = Push { batch_no: 2, from: "2".to_owned(), ..Scene::a_push(one, &old, 2) };
    scene.lose(other, one).await;
    assert_eq!(scene.refusal(late.clone()).await, Refusal::Stale);
    let new = scene.take(other).await;
    assert_eq!(scene.refusal(late.clone()).await, Refusal::Stale);
    let borrowed = Push { session: other, ..late };
    assert_eq!(scene.refusal(borrowed).await, Refusal::StaleBaton { source_name: name("s") });
    let ahead = Push { epoch: new.epoch + 1, ..Scene::a_push(other, &new, 1) };
    assert_eq!(scene.refusal(ahead).await, Refusal::StaleBaton { source_name: name("s") });
    let books = scene.books().await;
    assert_eq!((books.stale_pushes, books.pushed), (4, 2));
}

/// One numbering for a queue, whoever pushes.
pub async fn ids_are_consecutive_over_sources_and_submits(scene: &mut Scene) {
    let node = scene.node().await;
    let taken = scene.take(node).await;
    assert_eq!(scene.fill(node, 2).await, 1);
    assert_eq!(scene.push(Scene::a_push(node, &taken, 3)).await.unwrap().firsts, [3]);
    assert_eq!(scene.fill(node, 1).await, 6);
    let (_, spans) = scene.claim(node, 10).await;
    let born = scene.subject.now();
    assert!(spans.iter().all(|(span, _)| span.born == born));
    assert_eq!(scene.books().await.pushed, 6);
}
