//! The contract carried out: one function an operation, written once for every home that runs inside this process.
//!
//! [`apply`] takes the tables, the store's time and a request, and gives the answer. It reads no clock, does no I/O
//! of its own and checks everything before its first write, so that a refusal changes nothing but the lease of the
//! caller and the counters of refusals. The Redis scripts are the same functions in Lua, file by file; the state
//! machine in the test kit holds the two against each other.

mod baton;
mod claim;
mod clock;
mod intake;
mod membership;
mod registry;
mod returns;
mod settle;
mod survey;
mod tables;
mod waits;

pub(crate) use tables::{
    BodyKey, ClaimNumbers, ClaimRecord, Cut, KeyRecord, Line, Meta, Moved, QueueRecord, Series, SessionRecord,
    SourceRecord, Tables,
};

use super::{Answer, Request};

/// Carries out one request at store time `now`.
pub(crate) fn apply<T: Tables>(tables: &mut T, now: u64, request: &Request) -> Moved<Answer> {
    request.check()?;
    Ok(match request {
        Request::Join(it) => Answer::Join(membership::join(tables, now, it)?),
        Request::Beat(it) => Answer::Beat(membership::beat(tables, now, it)?),
        Request::Leave(it) => Answer::Leave(membership::leave(tables, now, it)?),
        Request::Reap(it) => Answer::Reap(membership::reap(tables, now, it)?),
        Request::Take(it) => Answer::Take(baton::take(tables, now, it)?),
        Request::Resign(it) => Answer::Resign(baton::resign(tables, now, it)?),
        Request::Rewind(it) => Answer::Rewind(baton::rewind(tables, it)?),
        Request::Remove(it) => Answer::Remove(baton::remove(tables, it)?),
        Request::Push(it) => Answer::Push(intake::push(tables, now, it)?),
        Request::Submit(it) => Answer::Submit(intake::submit(tables, now, it)?),
        Request::Claim(it) => Answer::Claim(claim::claim(tables, now, it)?),
        Request::Pass(it) => Answer::Pass(waits::pass(tables, now, it)?),
        Request::Look(it) => Answer::Look(waits::look(tables, now, it)?),
        Request::Settle(it) => Answer::Settle(settle::settle(tables, now, it)?),
        Request::DrainBegin(it) => Answer::DrainBegin(registry::begin(tables, now, it)?),
        Request::Peek(it) => Answer::Peek(registry::peek(tables, it)?),
        Request::Dispose(it) => Answer::Dispose(registry::dispose(tables, now, it)?),
        Request::Order(it) => Answer::Order(membership::order(tables, it)?),
        Request::Survey(_) => Answer::Survey(survey::survey(tables, now)?),
        Request::Result(it) => Answer::Result(settle::result(tables, now, it)?),
        Request::Bookmark(it) => Answer::Bookmark(intake::bookmark(tables, it)?),
        Request::Recount(_) => Answer::Recount(survey::recount(tables)?),
        Request::Purge(_) => Answer::Purge(survey::purge(tables)?),
    })
}
