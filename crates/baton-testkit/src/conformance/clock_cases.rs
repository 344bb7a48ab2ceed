//! The fleet clock through stalls and steps.

use baton::store::{Join, Kind, Reap, Reaped};

use super::scene::{LEASE, Scene};

/// An hour in which nothing moved is worth half a lease.
pub async fn a_stall_of_the_store_ends_no_session(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    scene.subject.pass(3_600_000).await;
    assert_eq!(scene.beat(one).await.unwrap().expired, []);
    assert_eq!(scene.ask(Reap { session: one, target: other }).await.unwrap(), Reaped::Alive);
    scene.beat(other).await.unwrap();
}

/// A clock set forwards or backwards is a stall, whatever it shows.
pub async fn a_clock_step_ends_no_session(scene: &mut Scene) {
    let (one, other) = (scene.node().await, scene.node().await);
    let start = scene.subject.now();
    for time in [start + 86_400_000, start - 86_400_000, start + 1, start] {
        scene.subject.set_time(time).await;
        for session in [one, other] {
            assert_eq!(scene.beat(session).await.unwrap().expired, []);
        }
    }
    // Time goes on as before afterwards.
    assert_eq!(scene.lose(one, other).await.counts(), Some((0, 0)));
}

/// Whoever has the shortest lease must have had two chances to beat.
pub async fn the_smallest_lease_bounds_the_clock(scene: &mut Scene) {
    let long = scene.node().await;
    let join = Join { lease_ms: 300, heartbeat_ms: 100, ..scene.a_join(Kind::Client, Vec::new()) };
    let short = join.session;
    scene.ask(join).await.unwrap();
    scene.subject.pass(LEASE).await;
    assert_eq!(scene.beat(long).await.unwrap().expired, [], "150 ms were counted");
    scene.subject.pass(LEASE).await;
    assert_eq!(scene.beat(long).await.unwrap().expired, [short], "300 ms were counted");
}
