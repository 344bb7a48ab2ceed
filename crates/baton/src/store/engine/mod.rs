//! The contract carried out: the effect of each operation, written once for every home that runs inside this process.
//!
//! [`apply`] takes the tables, the store's time and a request, and gives the answer. It reads no clock, does no I/O
//! of its own and checks everything before its first write, so that a refusal changes nothing but the
//! counters of refusals. The Redis scripts are the same in Lua, file by file; the state
//! machine in the test kit holds the two against each other.

pub(super) mod bodies;
pub(super) mod cache;
pub(super) mod calls;
pub(super) mod clock;
pub(super) mod errors;
pub(super) mod intake;
pub(super) mod offers;
pub(super) mod queues;
pub(super) mod results;
pub(super) mod returns;
mod tables;
pub(super) mod waits;

pub(crate) use tables::{
    Bodies, BodyKey, CacheBooks, CacheKind, CacheTable, CachedEntry, CallRecord, Calls, ClaimNumbers, ClaimRecord,
    Claims, ComputeRight, Cut, Errors, Fleet, Follower, Hold, KeyRecord, Keys, Line, Lines, Meta, Moved, QueueRecord,
    Queues, Results, Series, SessionRecord, Sessions, SourceRecord, Sources, Tables, UnreapedClaims, Waiters,
};

use super::{
    Answer, Request,
    operation::{Operation, operations},
};

/// What an operation does to the tables.
pub(super) trait Effect: Operation {
    /// Carries it out at store time `now`.
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Self::Answer>;
}

macro_rules! effects {
    ($($module:ident: $name:ident($request:ty) -> $answer:ty;)*) => {
        /// Carries out one request at store time `now`.
        pub(crate) fn apply<T: Tables>(tables: &mut T, now: u64, request: &Request) -> Moved<Answer> {
            request.check()?;
            Ok(match request { $(Request::$name(it) => Answer::$name(it.apply(tables, now)?),)* })
        }
    };
}
operations!(effects);

/// Whether a request that was just carried out has done part of its work: the same again does more of it.
#[cfg(feature = "sqlite")]
pub(crate) fn goes_on<T: Tables>(tables: &mut T, request: &Request) -> Moved<bool> {
    let over = match request {
        Request::Reap(it) => it.target,
        Request::Leave(it) => it.session,
        _ => return Ok(false),
    };
    Ok(tables.unreaped(over)?.is_some())
}
