//! The operations of a store, a folder each: all that is to be known of one lies side by side.
//!
//! * `mod.rs`: the request and its answer, the bounds of both, and the [`Facts`] of it;
//! * `engine.rs`: what it does, once for every store that runs inside this process;
//! * `<name>.lua`: the same for a Redis server;
//! * `redis.rs`: the arguments of that script and its answer, in the order that its head tells.
//!
//! A new operation is a folder here, its module and its line in the list below: the compiler asks for the rest. What
//! several of them need lies in `engine/` and, in Lua, in `redis/lua/`.

mod beat;
mod bookmark;
mod cache_get;
mod cache_put;
mod call;
mod cancel;
mod claim;
mod destroy;
mod dispose;
mod emit;
mod events;
mod follow;
mod invalidate;
mod invalidations;
mod join;
mod leave;
mod look;
mod order;
mod pass;
mod peek;
mod progress;
mod purge;
mod push;
mod reap;
mod recount;
mod release;
mod removal_begin;
mod remove;
mod remove_queue;
mod resign;
mod result;
mod rewind;
mod settle;
mod submit;
mod survey;
mod take;
mod unfollow;

use super::{Refusal, StoreError};
use crate::message::SessionId;

/// The list of operations, for whoever does something for each: hands it to the macro `then`.
macro_rules! operations {
    ($then:ident) => {
        $then! {
            join: Join(Join) -> Joined;
            beat: Beat(Beat) -> Beaten;
            leave: Leave(Leave) -> ();
            take: Take(Take) -> Taken;
            resign: Resign(Resign) -> ();
            push: Push(Push) -> Pushed;
            rewind: Rewind(Rewind) -> ();
            remove: Remove(Remove) -> ();
            submit: Submit(Submit) -> Submitted;
            claim: Claim(Claim) -> Claimed;
            pass: Pass(Pass) -> ();
            look: Look(Look) -> Looked;
            settle: Settle(Settle) -> Settled;
            reap: Reap(Reap) -> Reaped;
            removal_begin: RemovalBegin(RemovalBegin) -> RemovalBegun;
            peek: Peek(Peek) -> Page;
            dispose: Dispose(Dispose) -> Disposed;
            purge: Purge(Purge) -> Purged;
            remove_queue: RemoveQueue(RemoveQueue) -> ();
            order: Order(Order) -> ();
            survey: Survey(TakeSurvey) -> Survey;
            progress: Progress(ReadProgress) -> Progress;
            result: Result(ReadResult) -> Option<bytes::Bytes>;
            bookmark: Bookmark(ReadBookmark) -> Place;
            emit: Emit(Emit) -> Emitted;
            follow: Follow(FollowCall) -> EventPage;
            unfollow: Unfollow(UnfollowCall) -> ();
            events: Events(ReadEvents) -> EventPage;
            call: Call(ReadCall) -> Option<CallView>;
            cancel: Cancel(CancelCall) -> Cancelling;
            cache_get: CacheGet(CacheGet) -> CacheGetReply;
            cache_put: CachePut(CachePut) -> CachePutReply;
            release: Release(Release) -> ();
            invalidate: Invalidate(Invalidate) -> u64;
            invalidations: Invalidations(ReadInvalidations) -> Invalidations;
            recount: Recount(Recount) -> super::Recounted;
            destroy: Destroy(Destroy) -> Option<Removed>;
        }
    };
}
pub(super) use operations;

/// Declares the two enums, and the place of each operation in them.
macro_rules! requests {
    ($($module:ident: $name:ident($request:ty) -> $answer:ty;)*) => {
        $(pub use self::$module::*;)*

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

        impl Request {
            /// Whether it names a session, and which.
            #[must_use]
            pub fn session(&self) -> Option<SessionId> {
                match self { $(Self::$name(it) => it.session(),)* }
            }

            /// Whether it changes nothing.
            #[must_use]
            pub const fn reads(&self) -> bool {
                match self { $(Self::$name(_) => <$request>::READS,)* }
            }

            /// Whether it brings bodies that were not in the store before; how many bytes of them.
            #[must_use]
            pub fn new_bodies(&self) -> Option<usize> {
                match self { $(Self::$name(it) => it.new_bodies(),)* }
            }

            /// Refuses what no store may take, before it is sent: the checks that need no state.
            ///
            /// # Errors
            /// [`Refusal::Malformed`] or [`Refusal::Lease`].
            pub fn check(&self) -> Result<(), StoreError> {
                match self { $(Self::$name(it) => it.check(),)* }
            }
        }
    };
}

operations!(requests);

/// What is known of a request before it is carried out.
pub trait Facts {
    /// Whether it changes nothing.
    const READS: bool = false;

    /// The session that asks, if one must.
    fn session(&self) -> Option<SessionId>;

    /// Refuses what no store may take: the checks that need no state.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] or [`Refusal::Lease`].
    fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether it brings bodies that were not in the store before; how many bytes of them.
    fn new_bodies(&self) -> Option<usize> {
        None
    }
}

/// A request that knows the type of its answer, and what is to be known of it.
pub trait Operation: Facts {
    /// What the store answers.
    type Answer;
    /// The request as a member of the enum.
    fn request(self) -> Request;
    /// The answer out of the enum, if it is of this operation.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

/// Refuses a request that no store may take.
fn malformed(why: &'static str) -> Result<(), StoreError> {
    Err(Refusal::Malformed(why).into())
}
