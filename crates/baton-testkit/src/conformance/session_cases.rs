//! Joining, beating, leaving, being reaped.

use baton::store::{Beat, Join, Kind, Order, Reap, Reaped, Refusal, Stop};
use bytes::Bytes;

use super::scene::{LEASE, Scene, queue, range, ranges};

/// A join whose reply was lost is repeated.
pub async fn joining_twice_is_joining_once(scene: &mut Scene) {
    let join = scene.a_join(Kind::Node, Vec::new());
    let first = scene.ask(join.clone()).await.unwrap();
    assert_eq!(scene.ask(join.clone()).await.unwrap(), first);
    let sessions = scene.survey().await.sessions;
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].session, sessions[0].pid, &sessions[0].queues[..]), (join.session, 7, &[queue()][..]));
    assert_eq!(first.now_ms, scene.subject.now());
}

/// Such a session would be reaped for one lost beat.
pub async fn a_heartbeat_over_a_third_of_the_lease_is_refused(scene: &mut Scene) {
    for (lease_ms, heartbeat_ms) in [(1_000, 334), (9, 1), (86_400_001, 200), (u64::MAX, u64::MAX)] {
        let join = baton::store::Join { lease_ms, heartbeat_ms, ..scene.a_join(Kind::Node, Vec::new()) };
        assert_eq!(scene.refusal(join).await, Refusal::Lease { lease_ms, heartbeat_ms });
    }
    assert_eq!(scene.survey().await.sessions, []);
}

/// Past its lease, reaped, gone.
pub async fn a_silent_session_is_reaped_and_stale_for_ever(scene: &mut Scene) {
    let (alive, silent) = (scene.node().await, scene.node().await);
    scene.live(LEASE - 100, &[alive]).await;
    assert_eq!(scene.ask(Reap { session: alive, target: silent }).await.unwrap(), Reaped::Alive);
    assert_eq!(scene.beat(alive).await.unwrap().expired, []);
    scene.live(100, &[alive]).await;
    assert_eq!(scene.beat(alive).await.unwrap().expired, [silent]);
    let reap = Reap { session: alive, target: silent };
    assert_eq!(scene.ask(reap.clone()).await.unwrap().counts(), Some((0, 0)));
    assert_eq!(scene.ask(reap).await.unwrap(), Reaped::Gone);
    for _ in 0..2 {
        assert_eq!(
            scene.refusal(Beat { session: silent, report: Bytes::new(), asks: Vec::new() }).await,
            Refusal::Stale
        );
    }
    let claim = scene.a_claim(silent, 1);
    assert_eq!(scene.refusal(claim).await, Refusal::Stale);
    let reap = Reap { session: silent, target: alive };
    assert_eq!(scene.refusal(reap).await, Refusal::Stale);
}

/// Being late is no crime while nobody has noticed.
pub async fn a_late_call_revives_until_it_is_reaped(scene: &mut Scene) {
    let (alive, late) = (scene.node().await, scene.node().await);
    scene.live(LEASE * 2, &[alive]).await;
    scene.beat(late).await.unwrap();
    assert_eq!(scene.ask(Reap { session: alive, target: late }).await.unwrap(), Reaped::Alive);
}

/// What it held goes to the front, untouched.
pub async fn leaving_hands_claims_back_without_a_loss(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    scene.fill(one, 5).await;
    scene.fill(one, 5).await;
    scene.claim(one, 7).await;
    scene.leave(one).await;
    let (_, spans) = scene.claim(other, 100).await;
    assert_eq!(ranges(&spans), [range(1, 5), range(6, 2), range(8, 3)]);
    assert!(spans.iter().all(|(span, _)| span.crashes == 0 && span.attempts == 0));
}

/// A leave whose reply was lost is repeated.
pub async fn leaving_twice_is_leaving_once(scene: &mut Scene) {
    let node = scene.node().await;
    scene.leave(node).await;
    scene.leave(node).await;
    assert_eq!(scene.survey().await.sessions, []);
}

/// A later start lives.
pub async fn a_stop_reaches_those_who_joined_before_it(scene: &mut Scene) {
    let before = scene.node().await;
    assert_eq!(scene.beat(before).await.unwrap().stop, None);
    scene.ask(Order::Stop(Stop::Graceful, None)).await.unwrap();
    let after = scene.node().await;
    assert_eq!(scene.beat(before).await.unwrap().stop, Some(Stop::Graceful));
    assert_eq!(scene.beat(after).await.unwrap().stop, None);
    // The order made sharper reaches those of the first one, also when they had to join anew, and nobody since.
    let views = scene.survey().await.sessions;
    let former = views.iter().find(|view| view.session == before).map(|view| view.join_no);
    scene.ask(Order::Stop(Stop::Now, former)).await.unwrap();
    let anew = Join { former, ..scene.a_join(Kind::Node, Vec::new()) };
    assert_eq!(Some(scene.ask(anew.clone()).await.unwrap().join_no), former);
    assert_eq!(scene.beat(before).await.unwrap().stop, Some(Stop::Now));
    assert_eq!(scene.beat(anew.session).await.unwrap().stop, Some(Stop::Now));
    assert_eq!(scene.beat(after).await.unwrap().stop, None);
    scene.ask(Order::Stop(Stop::Now, None)).await.unwrap();
    assert_eq!(scene.beat(after).await.unwrap().stop, Some(Stop::Now));
}
