//! What the engine keeps, and the few moves a home for it must offer: a trait a subject.
//!
//! A home makes one engine call atomic: either all moves of a call are kept, or (on an error) none.

mod bodies;
mod cache;
mod calls;
mod claims;
mod errors;
mod fleet;
mod keys;
mod lines;
mod queues;
mod results;
mod sessions;
mod sources;
mod waiters;

pub(crate) use self::{
    bodies::{Bodies, BodyKey, Cut},
    cache::{CacheBooks, CacheKind, CacheTable, CachedEntry, ComputeRight},
    calls::{CallRecord, Calls, Follower, Hold},
    claims::{ClaimNumbers, ClaimRecord, Claims},
    errors::Errors,
    fleet::{Fleet, Meta},
    keys::{KeyRecord, Keys},
    lines::{Line, Lines},
    queues::{QueueRecord, Queues},
    results::Results,
    sessions::{Series, SessionRecord, Sessions, UnreapedClaims},
    sources::{SourceRecord, Sources},
    waiters::Waiters,
};
use crate::store::StoreError;

/// The result of a move; only homes that can fail ever return an error.
pub(crate) type Moved<T> = Result<T, StoreError>;

/// A home for the engine's records: whatever is a home for every subject.
pub(crate) trait Tables:
    Fleet + Sessions + Claims + Waiters + Sources + Queues + Lines + Bodies + Errors + Keys + Results + Calls + CacheTable
{
}

impl<T> Tables for T where
    T: Fleet
        + Sessions
        + Claims
        + Waiters
        + Sources
        + Queues
        + Lines
        + Bodies
        + Errors
        + Keys
        + Results
        + Calls
        + CacheTable
{
}
