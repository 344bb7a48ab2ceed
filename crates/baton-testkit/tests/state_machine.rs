//! The model against itself, and each real store against the model. `BATON_SEED` replays a run, `BATON_OPS` sets its
//! length.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_testkit::{
    machine,
    server::{Persistence, RedisServer},
    subject::{Subject, numbered_fleet},
};

#[test]
fn steps_reach_every_kind_of_answer() {
    let seen = machine::run("memory", 1, 20_000, async || Subject::memory());
    let all = "Beat(Beaten Bookmark(Place Claim(Empty Claim(Some Dispose(Disposed RemovalBegin(RemovalBegun Join(Joined Leave(( Look(Looked Pass(( \
               Order(( Peek(Page Purge(Purged Refused(QueueInUse Push(Pushed Reap(Alive Reap(Gone Reap(Taken Refused(BatonHeld Refused(Bookmark \
               Refused(Definition Refused(DefinitionInUse Refused(RemovalBusy Refused(Ended Refused(Full Refused(Gap Refused(Lease \
               Refused(NodesAlive Refused(NotRemover Refused(NotOffered Refused(Offered Refused(OutOfTurn Refused(Spent Refused(Stale \
               Refused(StaleBaton Call(None Call(Some(CallView Cancel(Ended Cancel(Followed Cancel(Marked Cancel(Unknown Emit(Full \
               Emit(Kept CacheGet(Found CacheGet(Lead CacheGet(Wait CacheGet(Alone CachePut(Kept CachePut(Passed CachePut(Dropped Release(( Invalidate( Invalidations( Events(EventPage Follow(EventPage Unfollow(( Refused(EventsGone Refused(NoCall Refused(NotHeld Remove(( Resign(( Result(None Result(Some(b Rewind(( Settle(Settled Submit(Submitted Take(Taken";
    for kind in all.split_whitespace() {
        assert!(seen.keys().any(|label| label.starts_with(kind)), "no step led to {kind}: {seen:#?}");
    }
}

#[test]
fn redis_agrees_with_the_model() {
    let (seed, operations) = machine::settings(0, 20_000);
    let server = RedisServer::start(Persistence::None);
    let fleet = AtomicU64::new(0);
    machine::run("redis", seed, operations, async || {
        Subject::redis(&server, numbered_fleet(fleet.fetch_add(1, Ordering::Relaxed))).await
    });
}

#[test]
fn sqlite_agrees_with_the_model() {
    let (seed, operations) = machine::settings(0, 20_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let fleet = AtomicU64::new(0);
    machine::run("sqlite", seed, operations, async || {
        Subject::sqlite(&file, numbered_fleet(fleet.fetch_add(1, Ordering::Relaxed)))
    });
}
