//! The store: what it keeps, what it promises, and the three that keep it.
//!
//! # The contract
//!
//! A store is asked by [`Request`] and gives an [`Answer`] or a [`Refusal`]. Each call is **atomic** in the store,
//! **checked** there, and **idempotent**: repeated after a lost reply it answers the same and nothing happens twice.
//! A refusal changes nothing but the counters of refusals. No client's clock and no client's
//! belief about itself is ever trusted.
//!
//! ```text
//!         push            claim             done
//! source ─────► READY ─────────► IN FLIGHT ─────► DONE
//!                 ▲  back, reap     │ │  retry
//!                 └─────────────────┘ └──► DELAYED ──due──► READY
//!      attempts or crashes used up ──► FAILED ──remove──► REMOVED, or ──requeue──► READY
//!      READY, DELAYED ──purge──► REMOVED
//!      a claim, a retry, a hand-back or a crash of a message whose call was cancelled ──► CANCELLED
//! ```
//!
//! * **Sessions** ([`Join`], [`Beat`], [`Leave`], [`Reap`]). Every caller that changes something has one. Its lease
//!   runs on the *fleet clock*, which joins, beats and reaps advance by the store time that passed, but at most by
//!   half the smallest lease and never backwards: a stalled store, a sleeping fleet and a clock that was set kill
//!   nobody. Past its lease a session may be reaped; until then its calls succeed and a beat revives it; after that all of
//!   them are STALE. Leaving returns claims without a crash; being reaped returns them with one.
//! * **Batons** ([`Take`], [`Resign`], [`Push`], [`Rewind`], [`Remove`]). A baton is (epoch, session) and lasts exactly
//!   as long as its holder's session. Epochs only grow. A push names its baton, its batch number and the cursor it
//!   begins at; it is checked in the order STALE, DUP, GAP, ended, FULL and moves the cursor in the same step. What a
//!   source is and which queue it feeds is set by the join that first offers it. Another definition is refused until a
//!   rewind, unless its offer adopts: then it holds from the join that finds no live session to offer it otherwise.
//! * **Submits** ([`Submit`]) are the same for messages from outside: serial numbers, idempotency keys, bookmarks
//!   that move with the messages they speak of.
//! * **Claims and settles** ([`Claim`], [`Settle`]). A claim names one queue; the token of a message in flight is
//!   (session, queue, claim number). Only it can settle. Several claims may be under way, those of one queue never wait
//!   for another's, and an empty one does not use its number. Settles are serial; each run of one is judged on its own;
//!   what it keeps (results, follow-up messages) commits with it.
//! * **Waiting** ([`Store::wait`], [`Pass`], [`Look`]). A claim that could have taken more enters its session among those
//!   who wait for the queue. Whatever makes a message ready or delayed takes one of them out and puts the queue on that
//!   session's wake-up list; so does a claim that leaves something behind, and a session that goes. A claim that waits
//!   for it is carried out with the read of the list, under a number of its own; a session that has no use for a wake-up
//!   passes it on. A wait that was in vain is followed by a look, so a lost wake-up costs a second at most.
//! * **Helpers**. A queue counts the nodes that work for it and hold no baton ([`Join`], [`Take`], [`Resign`], [`Leave`],
//!   [`Reap`] keep the count): a busy generator leaves a queue to them as long as its front does not wait ([`Beat`]).
//! * **Crashes**. What a reaped session held goes to the front in the order of ids with one loss more: in spans of at
//!   most 16 after the first, singly and one to a session after the second, to the errors after the fourth.
//!   An attempt that ended, whatever its outcome, forgives earlier crashes.
//! * **Calls** ([`Emit`], [`FollowCall`], [`UnfollowCall`], [`ReadEvents`], [`ReadCall`], [`CancelCall`]). A message that was
//!   submitted as a call has a record: its open messages (itself, and follow-ups that joined with the settle that brought
//!   them), who holds them, what they told, who follows. Events have consecutive numbers from 1 on; only the holder of a
//!   message adds some, each number once, each key once in a call. The step that ends the last open message, or buries one,
//!   writes the last event. A cancel marks the record, and the next step of each message ends it as cancelled; done and dead
//!   win. Followers are bound to their session. All of it is kept for an hour after the last message has ended.
//! * **What is cached** ([`CacheGet`], [`CachePut`], [`Release`], [`Invalidate`], [`ReadInvalidations`]). Values by key, each until it ends on
//!   the fleet clock, all within a bound of bytes. Where there is none the first that asks may compute it, and the others wait
//!   and are woken; that right lasts as long as its session, and ends by itself. What is forgotten, by key or prefix, raises
//!   the one generation: a value whose computation began before is neither kept nor given after it, and nobody waits for it.
//!   Beats tell the generation. What was forgotten long ago folds into a floor, and what is from before the floor counts as forgotten.
//! * **Errors** ([`RemovalBegin`], [`Peek`], [`Dispose`]). Read first, removed after they were handed over, by one
//!   drainer at a time; the next one takes over when its session is gone. A message whose body is missing becomes an
//!   error when it is claimed, and is never requeued.
//! * **Purges** ([`Purge`], [`RemoveQueue`]). What waits in a queue is removed in bounded steps, which share the numbers of
//!   disposals; what is in flight is not touched. An empty queue that no node uses can be forgotten: its last id is kept.
//! * **Books** ([`TakeSurvey`], [`Recount`]). Counters kept by every operation, and a recount of the data itself that
//!   must agree with them on every id ever allotted, and find a body for each message that may still run.
//!
//! # Parcels
//!
//! Messages travel and are stored as parcels: bodies are written once, and splitting, settling in part and reaping
//! only ever move [`crate::message::Span`]s over them. A claim gives cut parcels, never a list of messages.
//!
//! # Formats
//!
//! What is stored has a format number. A join, and every call without a session, is refused if it is another than
//! [`FORMAT`]; [`Store::standing`] and [`Store::convert`] lead from an older one to this.
//!
//! # Layout
//!
//! [`Request`] and its answers are plain data, so wrappers (faults, recorders) have one method to pass on. `operation`
//! has a folder for each: what it asks and answers, what it does to a small trait of tables, for which [`MemoryStore`]
//! and [`SqliteStore`] are two homes, and the same in Lua for [`RedisStore`]. `engine` and `redis` hold what several of
//! them need. [`session`] owns the numbers.

mod agreed;
mod books;
mod clock;
#[cfg(feature = "memory")]
mod engine;
mod event;
mod location;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "memory")]
mod memory_signals;
mod migration;
pub(crate) mod notice;
mod open;
mod operation;
#[cfg(feature = "redis")]
mod redis;
mod refusal;
pub mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
mod wake_up;
mod wire;

/// The values that travel: parcels of messages, what is left of them, what became of them.
pub mod message {
    pub use crate::message::{
        Body, BodyPlace, CALL, CANCELLED, CacheKey, CallEvent, CallId, CallRole, Calling, Digest, END, ERROR, Fields,
        Headers, IdSum, LAST_ERROR, MAX_BODY_BYTES, MAX_CACHE_KEY_BYTES, MAX_CACHE_KEY_PARTS, MAX_CRASHES,
        MAX_EVENT_BYTES, MAX_LAST_ERROR_BYTES, Mask, Outcome, PLAIN, Parcel, ParcelBuilder, Prefix, RESTART, Range,
        Run, Scope, Span, Submission, SubmissionKey,
    };
}

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use self::wake_up::WakeUp;
use crate::message::{Name, SessionId};

pub use books::{Books, Counted, Lacking, QueueRecount, Recounted};
pub use clock::Clock;
pub use event::{Ear, StoreEvent};
pub use location::{InvalidUrl, StoreUrl};
#[cfg(feature = "memory")]
pub use memory::MemoryStore;
pub use migration::{Conversion, Converted, FORMAT, SeenSession, Standing};
pub use open::open;
pub use operation::*;
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
pub use refusal::{Refusal, StoreError};
#[cfg(feature = "sqlite")]
pub use sqlite::{Backup, RestoreError, Restored, SqliteOptions, SqliteStore};

/// A boxed future, as stores and sources return them; a store one a call, never one a message.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest that [`Store::wait`] waits, so that with the look that follows a lost wake-up costs at most a second.
pub const MAX_WAIT: Duration = Duration::from_millis(800);

/// What ended a wait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Woken {
    /// Queues to look into, for which no claim was carried out; none if the wait was in vain.
    pub queues: Vec<Name>,
    /// The claims that waited for the other queues, by number, with what each brought.
    pub claimed: Vec<(u64, Claimed)>,
    /// The numbers of follows with something to read ([`FollowCall`]).
    pub follows: Vec<u64>,
}

/// The claims of a session that wait for messages, one a queue at most, as [`Store::wait`] finds them.
pub trait Waiting: Send + Sync {
    /// The one that waits for a queue.
    fn claim(&self, queue: &Name) -> Option<Claim>;

    /// Those that came to wait since this was last asked, for a store that keeps them itself.
    fn newcomers(&self) -> Vec<Claim>;
}

impl Waiting for Vec<Claim> {
    fn claim(&self, queue: &Name) -> Option<Claim> {
        self.iter().find(|claim| claim.queue == *queue).cloned()
    }

    fn newcomers(&self) -> Vec<Claim> {
        self.clone()
    }
}

/// Carries out the claims that wait for these queues, each as a call of its own.
async fn serve(
    store: &dyn Store, wake_ups: impl IntoIterator<Item = WakeUp>, waiting: &dyn Waiting,
) -> Result<Woken, StoreError> {
    let (queues, follows) = wake_up::sorted(wake_ups);
    let served = queues.iter().map(|queue| {
        let claim = waiting.claim(queue);
        async move {
            match claim {
                Some(claim) => Some((claim.claim_no, ask(store, claim).await)),
                None => None,
            }
        }
    });
    let served = futures_util::future::join_all(served).await;
    let mut woken = Woken { follows, ..Woken::default() };
    for (queue, served) in queues.into_iter().zip(served) {
        match served {
            Some((claim_no, Ok(claimed))) => woken.claimed.push((claim_no, claimed)),
            Some((_, Err(error @ StoreError::Refused(Refusal::Stale)))) => return Err(error),
            // Whoever claims again learns why.
            Some((_, Err(_))) | None => woken.queues.push(queue),
        }
    }
    Ok(woken)
}

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
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>>;

    /// The same store for calls that must not queue behind others, also from another runtime: for beats.
    fn apart(&self) -> Arc<dyn Store>;

    /// Has what happens to the store told to `ear` from now on, instead of to the one before: who holds it up, what was
    /// done about a file. Nothing is told of calls: their errors say that.
    fn hear(&self, ear: Ear) {
        drop(ear);
    }

    /// What keeps calls from being answered at this moment, as far as the store knows; one line for a person.
    fn in_the_way(&self) -> Option<String> {
        None
    }

    /// Whether the store may drop what is stored, as it was last seen: then it takes nothing new.
    fn may_drop(&self) -> bool {
        false
    }

    /// The fleets in the store; nothing where finding them would mean to look at all that is stored.
    ///
    /// # Errors
    /// As [`Store::call`].
    fn fleets(&self) -> BoxFuture<'_, Result<Option<Vec<Name>>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Closes what is open, in order: what was handed in before is carried out first. Other calls may follow.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until a queue is put on the wake-up list of the session, for [`MAX_WAIT`] at most, and takes what is on the
    /// list. The claims that wait for these queues are carried out at once, so that a message is on its way to the
    /// worker one round trip after its push.
    ///
    /// # Errors
    /// As [`Store::call`]: then wake-ups may be lost, and claims may have been carried out. Claiming again under their
    /// numbers gives what they brought.
    ///
    /// # Cancel safety
    /// As after an error.
    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>>;

    /// How what is stored stands towards this release's format, [`FORMAT`]. What lives no longer than its process is in
    /// none.
    ///
    /// # Errors
    /// As [`Store::call`]; [`Refusal::NewerFormat`] for what a newer release has written.
    fn standing(&self) -> BoxFuture<'_, Result<Standing, StoreError>> {
        Box::pin(std::future::ready(Ok(Standing::default())))
    }

    /// Carries out one step of the conversion to [`FORMAT`], unless somebody has called since `since` was looked at: the
    /// caller has watched for so long that whoever was silent is dead. Repeated until no step is left; the last one too
    /// may be repeated.
    ///
    /// # Errors
    /// As [`Store::standing`].
    fn convert(&self, since: Standing) -> BoxFuture<'_, Result<Conversion, StoreError>> {
        drop(since);
        Box::pin(std::future::ready(Ok(Conversion::Step { done: Converted::default(), left: 0 })))
    }
}

/// Carries out an operation and gives its own kind of answer.
///
/// # Errors
/// As [`Store::call`].
pub async fn ask<O: Operation>(store: &dyn Store, operation: O) -> Result<O::Answer, StoreError> {
    let answer = store.call(operation.request()).await?;
    O::answer(answer).ok_or_else(|| StoreError::Damaged("the store answered another question".to_owned()))
}
