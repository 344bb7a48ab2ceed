//! What is cached: values, the right to compute them, and what is forgotten.

use std::sync::Arc;

use baton::{
    SessionId,
    store::{
        CacheGet, CacheGetReply, CachePut, CachePutReply, Claim, Computed, Invalidate, Invalidations, Leave,
        MAX_COMPUTE_RIGHTS, MAX_INVALIDATIONS, ReadInvalidations, Refusal, Release,
        message::{CacheKey, Prefix, Scope},
    },
};
use bytes::Bytes;

use super::scene::{LEASE, Scene};

const LIVES: u64 = 30_000;

fn key() -> CacheKey {
    CacheKey::new("sales").part("1").part("tea")
}

fn ask_for(session: SessionId, key: &CacheKey, number: u64) -> CacheGet {
    CacheGet { session, key: key.clone(), number, lasts_ms: 40_000 }
}

fn value(session: SessionId, key: &CacheKey, number: u64, value: &str) -> CachePut {
    let outcome = Computed::Value(Bytes::copy_from_slice(value.as_bytes()));
    CachePut { session, key: key.clone(), number, outcome, ttl_ms: 30_000, max_bytes: 1 << 20 }
}

fn forget_below(prefix: &Prefix) -> Invalidate {
    Invalidate { scope: Scope::of_prefix(prefix), lives_ms: LIVES }
}

fn forget_key(key: &CacheKey) -> Invalidate {
    Invalidate { scope: Scope::of_key(key), lives_ms: LIVES }
}

impl Scene {
    /// What is found; the value, its generation and how long it is kept.
    async fn found(&self, session: SessionId, key: &CacheKey) -> Option<(Bytes, u64, u64)> {
        match self.ask(ask_for(session, key, 99)).await.unwrap() {
            CacheGetReply::Found { value, generation, left_ms, .. } => Some((value, generation, left_ms)),
            CacheGetReply::Lead { .. } => {
                self.ask(Release { session, key: key.clone(), number: 99 }).await.unwrap();
                None
            }
            other => panic!("neither found nor free: {other:?}"),
        }
    }

    async fn follows(&self, session: SessionId) -> Vec<u64> {
        self.subject.store.wait(session, Arc::new(Vec::<Claim>::new())).await.unwrap().follows
    }
}

/// One computes, the others wait and are woken.
pub async fn one_session_computes_and_the_others_wait(scene: &mut Scene) {
    let (first, second) = (scene.node().await, scene.node().await);
    let key = key();
    let lead = CacheGetReply::Lead { generation: 0 };
    assert_eq!(scene.ask(ask_for(first, &key, 1)).await.unwrap(), lead);
    assert_eq!(scene.ask(ask_for(first, &key, 1)).await.unwrap(), lead, "a repeat");
    assert_eq!(scene.ask(ask_for(second, &key, 7)).await.unwrap(), CacheGetReply::Wait { generation: 0 });
    let kept = CachePutReply::Kept { generation: 0 };
    assert_eq!(scene.ask(value(first, &key, 1, "")).await.unwrap(), kept);
    assert_eq!(scene.ask(value(first, &key, 1, "")).await.unwrap(), kept, "a repeat");
    assert_eq!(scene.follows(second).await, [7]);
    assert_eq!(scene.found(second, &key).await, Some((Bytes::new(), 0, 30_000)), "an empty value is one");
}

/// Only who has the right hands in, and only once.
pub async fn only_the_one_with_the_right_hands_in(scene: &mut Scene) {
    let (first, second) = (scene.node().await, scene.node().await);
    let key = key();
    scene.ask(ask_for(first, &key, 1)).await.unwrap();
    for other in [value(second, &key, 1, "x"), value(first, &key, 2, "x")] {
        assert_eq!(scene.ask(other).await.unwrap(), CachePutReply::Dropped);
    }
    scene.ask(Release { session: second, key: key.clone(), number: 1 }).await.unwrap();
    assert_eq!(scene.ask(ask_for(second, &key, 1)).await.unwrap(), CacheGetReply::Wait { generation: 0 });
    scene.ask(Leave { session: first }).await.unwrap();
    assert_eq!(scene.refusal(value(first, &key, 1, "x")).await, Refusal::Stale);
    assert_eq!(scene.refusal(ask_for(first, &key, 1)).await, Refusal::Stale);
}

/// What was begun before it is neither kept nor joined after it.
pub async fn what_was_computed_before_it_was_forgotten_is_not_kept(scene: &mut Scene) {
    let (first, second) = (scene.node().await, scene.node().await);
    let wide = Prefix::new("sales").part("1");
    let forgets =
        [forget_key(&key()), forget_below(&wide), forget_below(&Prefix::all()), forget_below(&wide.part("tea"))];
    for (nth, forget) in forgets.into_iter().enumerate() {
        let before = 2 * nth as u64;
        assert_eq!(scene.ask(ask_for(first, &key(), 1)).await.unwrap(), CacheGetReply::Lead { generation: before });
        assert_eq!(scene.ask(forget).await.unwrap(), before + 1);
        // Who comes later takes the right over.
        let lead = CacheGetReply::Lead { generation: before + 1 };
        assert_eq!(scene.ask(ask_for(second, &key(), 2)).await.unwrap(), lead);
        assert_eq!(scene.ask(value(first, &key(), 1, "old")).await.unwrap(), CachePutReply::Dropped);
        let kept = CachePutReply::Kept { generation: before + 1 };
        assert_eq!(scene.ask(value(second, &key(), 2, "new")).await.unwrap(), kept);
        assert_eq!(scene.found(first, &key()).await.map(|it| it.0), Some(Bytes::from_static(b"new")));
        assert_eq!(scene.ask(forget_key(&key())).await.unwrap(), before + 2);
        assert_eq!(scene.found(first, &key()).await, None, "what is kept is forgotten too");
    }
    // Also where nobody has taken the right over.
    assert_eq!(scene.ask(ask_for(first, &key(), 3)).await.unwrap(), CacheGetReply::Lead { generation: 8 });
    scene.ask(forget_below(&wide)).await.unwrap();
    assert_eq!(scene.ask(value(first, &key(), 3, "old")).await.unwrap(), CachePutReply::Dropped);
    assert_eq!(scene.found(second, &key()).await, None);
}

/// A value that is kept is covered by what is forgotten later, and a name that begins the same is not.
pub async fn prefixes_cover_what_is_below_them_and_nothing_else(scene: &mut Scene) {
    let session = scene.node().await;
    let near = CacheKey::new("sales").part("10").part("tea");
    for (key, number) in [(key(), 1), (near.clone(), 2)] {
        scene.ask(ask_for(session, &key, number)).await.unwrap();
        scene.ask(value(session, &key, number, "v")).await.unwrap();
    }
    assert_eq!(scene.ask(forget_below(&Prefix::new("sales").part("1"))).await.unwrap(), 1);
    assert_eq!(scene.found(session, &key()).await, None);
    assert_eq!(scene.found(session, &near).await.map(|it| it.1), Some(1), "it is valid now");
    let forgotten = scene.ask(ReadInvalidations { since: 0 }).await.unwrap();
    let scopes = vec![(Scope::of_prefix(&Prefix::new("sales").part("1")), 1)];
    assert_eq!(forgotten, Invalidations { generation: 1, floor: 0, scopes });
    assert_eq!(scene.ask(ReadInvalidations { since: 1 }).await.unwrap().scopes, []);
    assert_eq!(scene.beat(session).await.unwrap().generation, 1);
}

/// The right goes with the session.
pub async fn a_session_that_goes_frees_its_compute_rights_and_wakes_those_who_wait(scene: &mut Scene) {
    for reaped in [false, true] {
        let (leader, waiter) = (scene.node().await, scene.node().await);
        let key = key().part(reaped.to_string());
        assert_eq!(scene.ask(ask_for(leader, &key, 1)).await.unwrap(), CacheGetReply::Lead { generation: 0 });
        assert_eq!(scene.ask(ask_for(waiter, &key, 4)).await.unwrap(), CacheGetReply::Wait { generation: 0 });
        if reaped {
            scene.lose(waiter, leader).await;
        } else {
            scene.ask(Leave { session: leader }).await.unwrap();
        }
        assert_eq!(scene.follows(waiter).await, [0], "it looks at all it waits for");
        assert_eq!(scene.ask(ask_for(waiter, &key, 4)).await.unwrap(), CacheGetReply::Lead { generation: 0 });
        scene.ask(Leave { session: waiter }).await.unwrap();
    }
}

/// By their own clock values end at one moment, wherever they are read.
pub async fn values_end_on_the_fleet_clock(scene: &mut Scene) {
    let session = scene.node().await;
    scene.ask(ask_for(session, &key(), 1)).await.unwrap();
    scene.ask(CachePut { ttl_ms: 1_000, ..value(session, &key(), 1, "v") }).await.unwrap();
    scene.live(600, &[session]).await;
    match scene.ask(ask_for(session, &key(), 2)).await.unwrap() {
        CacheGetReply::Found { age_ms, left_ms, .. } => assert_eq!((age_ms, left_ms), (600, 400)),
        other => panic!("{other:?}"),
    }
    // A clock that jumps moves the fleet clock by half the smallest lease at most.
    scene.subject.pass(3_600_000).await;
    assert_eq!(scene.found(session, &key()).await, None);
    scene.ask(ask_for(session, &key(), 3)).await.unwrap();
    scene.ask(CachePut { ttl_ms: LEASE, ..value(session, &key(), 3, "v") }).await.unwrap();
    scene.subject.pass(3_600_000).await;
    assert_eq!(scene.found(session, &key()).await.map(|it| it.2), Some(LEASE), "it stood still already");
}

/// What may not be kept does not make those who want it wait for each other.
pub async fn what_may_not_be_kept_is_computed_by_all_at_once(scene: &mut Scene) {
    let (first, second) = (scene.node().await, scene.node().await);
    let large = "x".repeat(200_000);
    let pass = CachePut { outcome: Computed::Pass, ..value(first, &key(), 1, "") };
    for (nth, handed_in) in [pass, value(first, &key(), 1, &large)].into_iter().enumerate() {
        let key = key().part(nth.to_string());
        assert_eq!(scene.ask(ask_for(first, &key, 1)).await.unwrap(), CacheGetReply::Lead { generation: 0 });
        assert_eq!(scene.ask(ask_for(second, &key, 2)).await.unwrap(), CacheGetReply::Wait { generation: 0 });
        let handed_in = CachePut { key: key.clone(), ..handed_in };
        assert_eq!(scene.ask(handed_in.clone()).await.unwrap(), CachePutReply::Passed);
        assert_eq!(scene.ask(handed_in).await.unwrap(), CachePutReply::Passed, "a repeat");
        assert_eq!(scene.follows(second).await, [2]);
        for session in [first, second] {
            assert_eq!(scene.ask(ask_for(session, &key, 3)).await.unwrap(), CacheGetReply::Alone { generation: 0 });
        }
    }
}

/// Errors are told to others for a moment.
pub async fn an_error_is_told_until_it_ends(scene: &mut Scene) {
    let session = scene.node().await;
    scene.ask(ask_for(session, &key(), 1)).await.unwrap();
    let failed = CachePut { outcome: Computed::Error("no tea".into()), ttl_ms: 100, ..value(session, &key(), 1, "") };
    scene.ask(failed).await.unwrap();
    match scene.ask(ask_for(session, &key(), 2)).await.unwrap() {
        CacheGetReply::Found { value, is_error, .. } => assert_eq!((&value[..], is_error), (&b"no tea"[..], true)),
        other => panic!("{other:?}"),
    }
    scene.live(100, &[session]).await;
    assert_eq!(scene.found(session, &key()).await, None);
}

/// The oldest make room, and one large value displaces nothing.
pub async fn values_take_so_much_room_and_the_oldest_go(scene: &mut Scene) {
    let session = scene.node().await;
    let keys: Vec<CacheKey> = (0..12).map(|nth| CacheKey::new(format!("{nth:02}"))).collect();
    // Room for ten: 256 bytes, a key of two and 100 of value.
    let max_bytes = 10 * 358;
    for key in &keys {
        scene.ask(ask_for(session, key, 1)).await.unwrap();
        let kept = CachePut { max_bytes, ..value(session, key, 1, &"v".repeat(100)) };
        assert_eq!(scene.ask(kept).await.unwrap(), CachePutReply::Kept { generation: 0 });
        scene.live(10, &[session]).await;
    }
    for (nth, key) in keys.iter().enumerate() {
        assert_eq!(scene.found(session, key).await.is_some(), nth >= 2, "{nth}");
    }
    let large = CacheKey::new("large");
    scene.ask(ask_for(session, &large, 1)).await.unwrap();
    let refused = CachePut { max_bytes, ..value(session, &large, 1, &"v".repeat(400)) };
    assert_eq!(scene.ask(refused).await.unwrap(), CachePutReply::Passed);
    let left = [&keys[2..3], &keys[4..]].concat();
    let mut found = 0;
    for key in &left {
        found += usize::from(scene.found(session, key).await.is_some());
    }
    assert!(found >= 8, "only what makes room for a mark of 261 bytes goes: {found}");
}

/// A process that has lost sight of its right to compute holds nobody up for ever.
pub async fn a_compute_right_that_lasts_too_long_is_taken_over(scene: &mut Scene) {
    let (stuck, other) = (scene.node().await, scene.node().await);
    scene.ask(CacheGet { lasts_ms: 1_000, ..ask_for(stuck, &key(), 1) }).await.unwrap();
    scene.live(900, &[stuck, other]).await;
    assert_eq!(scene.ask(ask_for(other, &key(), 1)).await.unwrap(), CacheGetReply::Wait { generation: 0 });
    scene.live(100, &[stuck, other]).await;
    assert_eq!(scene.ask(ask_for(other, &key(), 1)).await.unwrap(), CacheGetReply::Lead { generation: 0 });
    assert_eq!(scene.ask(value(stuck, &key(), 1, "late")).await.unwrap(), CachePutReply::Dropped);
}

/// A session may not take the right to everything.
pub async fn a_session_has_so_many_compute_rights(scene: &mut Scene) {
    let (session, other) = (scene.node().await, scene.node().await);
    for nth in 0..MAX_COMPUTE_RIGHTS {
        let lead = scene.ask(ask_for(session, &CacheKey::new(nth.to_string()), nth)).await.unwrap();
        assert_eq!(lead, CacheGetReply::Lead { generation: 0 });
    }
    assert_eq!(scene.ask(ask_for(session, &key(), 1)).await.unwrap(), CacheGetReply::Alone { generation: 0 });
    assert_eq!(scene.ask(ask_for(other, &key(), 1)).await.unwrap(), CacheGetReply::Lead { generation: 0 });
}

/// What was forgotten long ago folds into the floor, and so does what is too much.
pub async fn what_was_forgotten_folds_into_a_floor(scene: &mut Scene) {
    let session = scene.node().await;
    let old = CacheKey::new("old");
    scene.ask(ask_for(session, &old, 1)).await.unwrap();
    scene.ask(forget_key(&key())).await.unwrap();
    scene.live(LIVES, &[session]).await;
    assert_eq!(scene.ask(ReadInvalidations { since: 0 }).await.unwrap().floor, 0);
    scene.ask(forget_key(&CacheKey::new("other"))).await.unwrap();
    let forgotten = scene.ask(ReadInvalidations { since: 0 }).await.unwrap();
    assert_eq!((forgotten.generation, forgotten.floor, forgotten.scopes.len()), (2, 1, 1));
    // It began below the floor: nobody knows any more what was forgotten since.
    assert_eq!(scene.ask(value(session, &old, 1, "v")).await.unwrap(), CachePutReply::Dropped);
    // Many at once: a file takes them together.
    let keys: Vec<CacheKey> = (0..=MAX_INVALIDATIONS).map(|nth| CacheKey::new(nth.to_string())).collect();
    for some in keys.chunks(256) {
        let forgets = some.iter().map(|key| scene.ask(forget_key(key)));
        assert!(futures_util::future::join_all(forgets).await.iter().all(Result::is_ok));
    }
    let forgotten = scene.ask(ReadInvalidations { since: 0 }).await.unwrap();
    assert_eq!(forgotten.floor, forgotten.generation, "too many to be told: all of it");
    assert_eq!(scene.ask(ReadInvalidations { since: forgotten.generation - 3 }).await.unwrap().scopes.len(), 3);
    let floor = scene.ask(ReadInvalidations { since: forgotten.generation }).await.unwrap().floor;
    assert_eq!(floor, forgotten.generation - MAX_INVALIDATIONS);
}
