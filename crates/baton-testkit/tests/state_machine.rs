//! The model against itself, and each real store against the model.

use baton_testkit::{machine, subject::Subject};

#[test]
fn the_model_agrees_with_itself_and_balances() {
    let (seed, operations) = machine::settings(1, 20_000);
    let seen = machine::run("memory", seed, operations, async || Subject::memory());
    println!("{seen:#?}");
    let all = "Beat(Beaten Bookmark(Place Claim(Empty Claim(Some Dispose(Disposed DrainBegin(Draining Join(Joined Leave(( \
               Order(( Peek(Page Push(Pushed Reap(Alive Reap(Gone Reap(Taken Refused(BatonHeld Refused(Bookmark \
               Refused(Definition Refused(DrainBusy Refused(Ended Refused(Full Refused(Gap Refused(Lease \
               Refused(NodesAlive Refused(NotDrainer Refused(NotOffered Refused(OutOfTurn Refused(Spent Refused(Stale \
               Refused(StaleBaton Resign(( Result(None Result(Some(b Rewind(( Settle(Settled Submit(Submitted Take(Taken";
    for kind in all.split_whitespace() {
        assert!(seen.keys().any(|label| label.starts_with(kind)), "no step led to {kind}");
    }
}
