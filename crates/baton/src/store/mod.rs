//! The store: what it keeps, what it promises, and the three that keep it.
//!
//! # The contract
//!
//! A store is asked by [`Request`] and gives an [`Answer`] or a [`Refusal`]. Each call is **atomic** in the store,
//! **checked** there, and **idempotent**: repeated after a lost reply it answers the same and nothing happens twice.
//! A refusal changes nothing but the caller's lease and the counters of refusals. No client's clock and no client's
//! belief about itself is ever trusted.
//!
//! ```text
//!         push            claim             done
//! source ─────► READY ─────────► IN FLIGHT ─────► DONE
//!                 ▲  back, reap     │ │  retry
//!                 └─────────────────┘ └──► DELAYED ──due──► READY
//!      attempts or losses used up ──► DEAD (error registry) ──drain──► DRAINED, or ──requeue──► READY
//! ```
//!
//! * **Sessions** ([`Join`], [`Beat`], [`Leave`], [`Reap`]). Every caller that changes something has one. Its lease
//!   runs on the *fleet clock*, which each call with a session advances by the store time that passed, but at most by
//!   half the smallest lease and never backwards: a stalled store, a sleeping fleet and a clock that was set kill
//!   nobody. Past its lease a session may be reaped; until then its calls succeed and revive it; after that all of
//!   them are STALE. Leaving returns claims without a loss; being reaped returns them with one.
//! * **Batons** ([`Take`], [`Resign`], [`Push`], [`Rewind`], [`Remove`]). A baton is (epoch, session) and lasts exactly
//!   as long as its holder's session. Epochs only grow. A push names its baton, its batch number and the cursor it
//!   begins at; it is checked in the order STALE, DUP, GAP, ended, FULL and moves the cursor in the same step. What a
//!   source is and which queue it feeds is set by the join that first offers it. Another definition is refused until a
//!   rewind, unless its offer adopts: then it holds from the join that finds no live session to offer it otherwise.
//! * **Submits** ([`Submit`]) are the same for messages from outside: serial numbers, idempotency keys, bookmarks
//!   that move with the messages they speak of.
//! * **Claims and settles** ([`Claim`], [`Settle`]). The token of a message in flight is (session, claim number). Only
//!   it can settle. Several claims may be under way; an empty one does not use its number. Settles are serial; each
//!   run of one is judged on its own; what it keeps (results, follow-up messages) commits with it.
//! * **Losses**. What a reaped session held goes to the front in the order of ids with one loss more: in pieces of at
//!   most 16 after the first, singly and one to a session after the second, to the error registry after the fourth.
//!   An attempt that ended, whatever its outcome, forgives earlier losses.
//! * **Errors** ([`DrainBegin`], [`Peek`], [`Dispose`]). Read first, removed after they were handed over, by one
//!   drainer at a time; the next one takes over when its session is gone.
//! * **Books** ([`TakeSurvey`], [`Recount`]). Counters kept by every operation, and a recount of the data itself that
//!   must agree with them on every id ever allotted.
//!
//! # Parcels
//!
//! Messages travel and are stored as parcels: bodies are written once, and splitting, settling in part and reaping
//! only ever move [`crate::message::Piece`]s over them. A claim gives cut parcels, never a list of messages.
//!
//! # Layout
//!
//! [`Request`] and its answers are plain data, so wrappers (faults, recorders) have one method to pass on. `engine`
//! carries out the contract over a small trait of tables; [`MemoryStore`] and [`SqliteStore`] are two homes for it.
//! [`RedisStore`] is the same engine in Lua, one script an operation. [`session`] owns the numbers.

mod books;
mod clock;
mod engine;
mod location;
mod memory;
pub(crate) mod notice;
mod open;
mod redis;
mod refusal;
mod request;
pub mod session;
mod sqlite;
mod wire;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

pub use books::{Books, Found, QueueRecount, Recounted};
pub use clock::Clock;
pub use location::{InvalidUrl, StoreUrl};
pub use memory::MemoryStore;
pub use open::open;
pub use redis::{RedisOptions, RedisStore};
pub use refusal::{Refusal, StoreError};
pub use request::*;
pub use sqlite::{SqliteOptions, SqliteStore};

/// A future a store hands out: one a call, never one a message.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest that [`Store::claim_when_ready`] waits, so that a lost wake-up costs no more.
pub const MAX_WAIT: Duration = Duration::from_secs(1);

/// A store; see the module for what every operation means.
pub trait Store: Send + Sync {
    /// Carries out one request.
    ///
    /// # Errors
    /// [`StoreError::Refused`] is an answer; after any other error it is unknown whether the call took effect, and
    /// repeating it is safe.
    ///
    /// # Cancel safety
    /// Dropping the future does not undo the call: it may take effect. Repeat it to learn its answer.
    fn call(&self, request: Request) -> Reply<'_, Result<Answer, StoreError>>;

    /// The same store for calls that must not queue behind others, also from another runtime: for beats.
    fn apart(&self) -> Arc<dyn Store>;

    /// Claims as soon as one of the queues may have messages, and after `limit` (at most 1 s) in any case. Waiting and
    /// claiming are one call so that a store can do both in one round trip.
    ///
    /// # Errors
    /// As [`Store::call`].
    ///
    /// # Cancel safety
    /// As [`Store::call`]: the claim may take effect. A wake-up may be lost too, which costs others at most 1 s.
    fn claim_when_ready(&self, claim: Claim, limit: Duration) -> Reply<'_, Result<Answer, StoreError>>;
}

/// Carries out an operation and gives its own kind of answer.
///
/// # Errors
/// As [`Store::call`].
pub async fn ask<O: Operation>(store: &dyn Store, operation: O) -> Result<O::Answer, StoreError> {
    let answer = store.call(operation.request()).await?;
    O::answer(answer).ok_or_else(|| StoreError::Damaged("the store answered another question".to_owned()))
}
