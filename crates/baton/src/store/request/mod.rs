//! The operations of a store as data: one request and one answer each.

mod baton;
mod errors;
mod intake;
mod membership;
mod survey;
mod work;

use std::collections::BTreeSet;

use bytes::Bytes;

pub use self::{baton::*, errors::*, intake::*, membership::*, survey::*, work::*};
use super::{Refusal, StoreError};
use crate::message::{Name, Outcome, SessionId};

/// Declares a request type, its answer type and their places in the two enums.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($request:ty) -> $answer:ty;)*) => {
        /// Any request, for whoever passes them on: wrappers, queues, recorders.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is documented at its type")]
        pub enum Request { $($name($request),)* }

        /// Any answer; its variant is that of the request.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is documented at its type")]
        pub enum Answer { $($name($answer),)* }

        $(impl Operation for $request {
            type Answer = $answer;
            fn request(self) -> Request { Request::$name(self) }
            fn answer(answer: Answer) -> Option<$answer> {
                match answer { Answer::$name(answer) => Some(answer), _ => None }
            }
        })*
    };
}

/// A request that knows the type of its answer.
pub trait Operation {
    /// What the store answers.
    type Answer;
    /// The request as a member of the enum.
    fn request(self) -> Request;
    /// The answer out of the enum, if it is of this operation.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

operations! {
    Join(Join) -> Joined;
    Beat(Beat) -> Beaten;
    Leave(Leave) -> ();
    Take(Take) -> Taken;
    Resign(Resign) -> ();
    Push(Push) -> Pushed;
    Rewind(Rewind) -> ();
    Remove(Remove) -> ();
    Submit(Submit) -> Submitted;
    Claim(Claim) -> Claimed;
    Pass(Pass) -> ();
    Look(Look) -> Looked;
    Settle(Settle) -> Settled;
    Reap(Reap) -> Reaped;
    DrainBegin(DrainBegin) -> Draining;
    Peek(Peek) -> Page;
    Dispose(Dispose) -> Disposed;
    Order(Order) -> ();
    Survey(TakeSurvey) -> Survey;
    Result(ReadResult) -> Option<Bytes>;
    Bookmark(ReadBookmark) -> Place;
    Recount(Recount) -> super::Recounted;
    Purge(Purge) -> ();
}

impl Request {
    /// Whether it names a session, and which.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        Some(match self {
            Self::Join(it) => it.session,
            Self::Beat(it) => it.session,
            Self::Leave(it) => it.session,
            Self::Take(it) => it.session,
            Self::Resign(it) => it.session,
            Self::Push(it) => it.session,
            Self::Submit(it) => it.session,
            Self::Claim(it) => it.session,
            Self::Pass(it) => it.session,
            Self::Look(it) => it.session,
            Self::Settle(it) => it.session,
            Self::Reap(it) => it.session,
            Self::DrainBegin(it) => it.session,
            Self::Dispose(it) => it.session,
            _ => return None,
        })
    }

    /// Refuses what no store may take, before it is sent: the checks that need no state.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] or [`Refusal::Lease`].
    pub fn check(&self) -> Result<(), StoreError> {
        let malformed = |why| Err(Refusal::Malformed(why).into());
        match self {
            Self::Join(it) => {
                let fits = (10..=86_400_000).contains(&it.lease_ms) && it.heartbeat_ms.saturating_mul(3) <= it.lease_ms;
                if !fits {
                    return Err(Refusal::Lease { lease_ms: it.lease_ms, heartbeat_ms: it.heartbeat_ms }.into());
                }
                if it.offers.len() > MAX_LOTS || it.queues.len() > MAX_LOTS {
                    return malformed("a session names up to 1024 sources and queues");
                }
                let sources: BTreeSet<&Name> = it.offers.iter().map(|offer| &offer.source).collect();
                if sources.len() != it.offers.len() {
                    return malformed("a session offers a source once");
                }
            }
            Self::Push(it) if it.parcels.len() > MAX_LOTS => return malformed("a push takes up to 1024 parcels"),
            Self::Submit(it) if it.lots.is_empty() || it.lots.len() > MAX_LOTS => {
                return malformed("a submit takes 1 to 1024 lots");
            }
            Self::Submit(it) if it.lots.iter().any(|lot| lot.key.is_some() && lot.parcel.len() != 1) => {
                return malformed("a keyed lot holds one message");
            }
            // A lot that its key keeps out would be passed over by the bookmark for ever.
            Self::Submit(it) if it.bookmark.is_some() && it.lots.iter().any(|lot| lot.key.is_some()) => {
                return malformed("a bookmark goes with lots that have no key");
            }
            Self::Claim(it) if it.n == 0 || it.n > 65_536 || it.claim_no == 0 => {
                return malformed("a claim takes 1 to 65536 messages and a number above 0");
            }
            Self::Beat(it) if it.asks.len() > MAX_LOTS => return malformed("a beat asks about up to 1024 queues"),
            Self::Settle(it) if it.runs.len() > MAX_RUNS => return malformed("a settle takes up to 65536 runs"),
            Self::Dispose(it) if it.ids.len() > MAX_RUNS => return malformed("a disposal takes up to 65536 ids"),
            Self::Settle(it) => {
                for run in &it.runs {
                    let with_result = matches!(&run.outcome, Outcome::Done { result: Some(_), .. });
                    if run.range.len == 0 || run.range.first == 0 || (with_result && run.range.len != 1) {
                        return malformed("a run is never empty, and a result belongs to one message");
                    }
                    if matches!(&run.outcome, Outcome::Retry { after_ms } if *after_ms > MAX_RETRY_MS) {
                        return malformed("a retry is put off by at most 366 days");
                    }
                    if let Outcome::Done { follow_ups, .. } = &run.outcome
                        && follow_ups.iter().any(|lot| lot.key.is_some() && lot.parcel.len() != 1)
                    {
                        return malformed("a keyed lot holds one message");
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
