//! The operations of a store as data: one request and one answer each.

use bytes::Bytes;

use super::{Books, Refusal, StoreError};
use crate::message::{Digest, Key, Lot, Name, Outcome, Parcel, Piece, Range, Run, SessionId};

/// What kind of caller a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A member of the fleet: may hold batons and claims.
    Node,
    /// A visitor (push, errors, gateway): not shown among the nodes, never offered a baton.
    Client,
}

/// A source a session is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub source: Name,
    /// The queue its messages go to.
    pub queue: Name,
    /// What it is, so that two different sources under one name are noticed.
    pub definition: Digest,
}

/// Registers a session. Repeating it answers the same; its id is random and used once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The new session.
    pub session: SessionId,
    /// Node or client.
    pub kind: Kind,
    /// Where it runs, for people.
    pub host: String,
    /// Its process id there, for people.
    pub pid: u32,
    /// The queues it works for, for people.
    pub queues: Vec<Name>,
    /// Silence, on the fleet clock, after which it may be reaped.
    pub lease_ms: u64,
    /// How often it means to beat: at most a third of the lease.
    pub heartbeat_ms: u64,
    /// The sources it can run; none for a pure worker.
    pub offers: Vec<Offer>,
    /// The join number of the session this one goes on for, so that an order to stop still reaches it.
    pub former: Option<u64>,
}

/// The answer to [`Join`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Random text made when the fleet's data was: another one means other data.
    pub incarnation: String,
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// Its place among all joins, or that of the session it goes on for.
    pub join_no: u64,
}

/// Extends the lease and tells what the fleet wants of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The session.
    pub session: SessionId,
    /// Rates and latencies for `status` and `performance`; opaque to the store.
    pub report: Bytes,
}

/// The answer to [`Beat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beaten {
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// Offered sources that nobody runs: take one.
    pub due: Vec<Name>,
    /// Batons the session holds, with their epochs; one it does not run, it resigns.
    pub held: Vec<(Name, u64)>,
    /// Sessions past their lease, at most 16: reap them.
    pub expired: Vec<SessionId>,
    /// Claim numbers under which it holds messages; one it does not know, it repeats to get them.
    pub claims: Vec<u64>,
    /// How many nodes have a session; a node alone does everything itself.
    pub nodes: u64,
    /// Whether it is asked to stop.
    pub stop: Option<Stop>,
}

/// How a session is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finish what runs, then leave.
    Drain,
    /// Leave at once.
    Now,
}

/// Ends a session: claims go back without a loss, batons are free. Leaving twice is leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The session.
    pub session: SessionId,
}

/// Takes the baton of an offered source if nobody has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Who takes.
    pub session: SessionId,
    /// The source.
    pub source: Name,
}

/// The answer to [`Take`]; the holder itself gets the same epoch again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Larger than every earlier epoch of this source.
    pub epoch: u64,
    /// Where to go on; empty at the start.
    pub cursor: String,
    /// The last batch pushed in this epoch.
    pub batch_no: u64,
}

/// Gives a baton back. One that is not held is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resign {
    /// Who resigns.
    pub session: SessionId,
    /// The source.
    pub source: Name,
    /// The epoch it was held in.
    pub epoch: u64,
}

/// Stores a batch of a source and moves its cursor, checked in the order STALE, DUP, GAP, ended, FULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Who pushes.
    pub session: SessionId,
    /// The source.
    pub source: Name,
    /// The epoch of the baton.
    pub epoch: u64,
    /// 1, 2, 3 … within the epoch.
    pub batch_no: u64,
    /// The cursor the batch begins at; must be the stored one.
    pub from: String,
    /// The cursor after it.
    pub to: String,
    /// The messages; none if the cursor moves over nothing.
    pub parcels: Vec<Parcel>,
    /// Whether the source ends here.
    pub end: bool,
    /// Bytes the queue may hold before FULL.
    pub max_backlog: u64,
}

/// The answer to [`Push`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The first id of each parcel; empty for a repeat of an older batch.
    pub firsts: Vec<u64>,
    /// Whether the batch had been taken before.
    pub duplicate: bool,
}

/// Resets the cursor, the end and the definition of a source that nobody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The source.
    pub source: Name,
}

/// Where a long input stands: how many lines were taken and what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Lines taken.
    pub lines: u64,
    /// Their chained digest.
    pub digest: Digest,
}

impl Place {
    /// Before the first line.
    pub const START: Self = Self { lines: 0, digest: Digest::START };
}

/// Moves a bookmark in the same step as the lots it speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveBookmark {
    /// The caller's key.
    pub key: Key,
    /// Where it must stand.
    pub from: Place,
    /// Where it stands afterwards.
    pub to: Place,
}

/// Messages from outside. Serial per session with up to [`SUBMIT_WINDOW`] repeats; each lot is judged on its own,
/// except under a bookmark, where a full queue refuses all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// Who submits.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub submit_no: u64,
    /// At most [`MAX_LOTS`].
    pub lots: Vec<Lot>,
    /// A bookmark to move with them.
    pub bookmark: Option<MoveBookmark>,
    /// Bytes a queue may hold before FULL.
    pub max_backlog: u64,
    /// Idempotency keys the fleet may keep before new ones are refused; [`MAX_KEYS`] unless tested.
    pub max_keys: u64,
}

/// The most lots in one [`Submit`].
pub const MAX_LOTS: usize = 1024;
/// The most runs in one [`Settle`], and ids in one [`Dispose`].
pub const MAX_RUNS: usize = 65_536;
/// The most pieces in one claim, so that no call holds the others up for long.
pub const MAX_PIECES: usize = 1024;
/// How many submits may be under way at once: so many answers are kept.
pub const SUBMIT_WINDOW: u64 = 16;
/// How far claim numbers may run ahead of the lowest unused one.
pub const CLAIM_WINDOW: u64 = 64;
/// The most idempotency keys kept at once; over that, new ones are refused and none is dropped early.
pub const MAX_KEYS: u64 = 1_000_000;
/// How long an idempotency key is kept.
pub const KEY_TTL_MS: u64 = 24 * 3_600_000;
/// The longest a retry may be put off.
pub const MAX_RETRY_MS: u64 = 366 * 24 * 3_600_000;
/// How long a result is kept.
pub const RESULT_TTL_MS: u64 = 3_600_000;

/// What became of one lot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LotVerdict {
    /// Stored under consecutive ids.
    Stored {
        /// The first of them.
        first: u64,
    },
    /// The key was seen with this body: the message exists under this id.
    Duplicate {
        /// Its id.
        first: u64,
    },
    /// The key was seen with another body.
    Conflict,
    /// No further key can be kept now.
    KeysFull,
    /// The queue is full; so is it for all later lots of this call.
    Full,
}

/// The answer to [`Submit`]: a verdict a lot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// In the order of the lots.
    pub lots: Vec<LotVerdict>,
}

/// Asks for messages of the first queue, in the order given, that has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who claims.
    pub session: SessionId,
    /// A number not used before, less than [`CLAIM_WINDOW`] beyond the highest used; an empty claim does not use it.
    pub claim_no: u64,
    /// The most messages.
    pub n: u32,
    /// The most body bytes, though at least one message is given.
    pub max_bytes: u64,
    /// Where to look.
    pub queues: Vec<Name>,
}

/// The answer to [`Claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Messages of one queue. A repeat gives what is still in flight under the number.
    Some {
        /// The queue.
        queue: Name,
        /// Pieces with their bodies, each body parcel cut to its piece.
        pieces: Vec<(Piece, Parcel)>,
    },
    /// Nothing to do.
    Empty {
        /// Milliseconds until the next delayed message is due, if there is one.
        next_due_ms: Option<u64>,
    },
}

/// Reports outcomes. Serial per session: the next number executes, the last one is answered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Who settles.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub settle_no: u64,
    /// Each judged on its own: all of its messages must be held under its claim.
    pub runs: Vec<Run>,
}

/// The answer to [`Settle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Runs that were refused, as (claim number, messages).
    pub refused: Vec<(u64, Range)>,
}

/// Takes back what a session past its lease holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reap {
    /// Who asks.
    pub session: SessionId,
    /// Who is to be reaped.
    pub target: SessionId,
}

/// The answer to [`Reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// Its messages went back or, with their losses used up, to the error registry.
    Taken {
        /// Messages back in their queues.
        back: u64,
        /// Messages dead.
        dead: u64,
    },
    /// Its lease has not run out.
    Alive,
    /// There is no such session (any more).
    Gone,
}

/// Begins to drain a queue's errors, or takes over from a drainer that is gone. Repeating it takes a new snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainBegin {
    /// Who drains.
    pub session: SessionId,
    /// The queue.
    pub queue: Name,
}

/// The answer to [`DrainBegin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draining {
    /// The newest error of the snapshot.
    pub upto: u64,
    /// The last dispose number of this session.
    pub dispose_no: u64,
}

/// Reads errors in the order they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// The queue.
    pub queue: Name,
    /// Errors after this one.
    pub after: u64,
    /// Up to and with this one.
    pub upto: u64,
    /// The most errors.
    pub limit: u32,
    /// The most bytes of bodies and error texts, though at least one error is given.
    pub max_bytes: u64,
}

/// A message in the error registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadMessage {
    /// Its place in the registry of its queue.
    pub seq: u64,
    /// Its id.
    pub id: u64,
    /// Attempts that ended with an error.
    pub attempts: u32,
    /// Sessions that died with it.
    pub losses: u32,
    /// Store time of its push.
    pub born: u64,
    /// Store time of its death.
    pub at: u64,
    /// Where it ran last, as `host/pid`.
    pub node: String,
    /// Why it failed.
    pub error: String,
    /// Its body.
    pub body: Bytes,
}

impl DeadMessage {
    /// What it counts for against the byte bound of a page.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        (self.body.len() + self.error.len()) as u64
    }

    /// Adds it to a page that weighs `bytes` so far, if the page may still weigh so much or is empty.
    pub(crate) const fn fits(&self, bytes: &mut u64, budget: u64) -> bool {
        let fits = *bytes == 0 || *bytes + self.weight() <= budget;
        *bytes += self.weight();
        fits
    }
}

/// The answer to [`Peek`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In the order of `seq`.
    pub errors: Vec<DeadMessage>,
}

/// What a drainer does with errors it has dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// They were handed over: remove them.
    Drain,
    /// Back to the end of their queue under the same ids, attempts and losses forgotten.
    Requeue,
}

/// Removes errors from the registry. Serial per session, by the drainer of the queue only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispose {
    /// Who disposes.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub dispose_no: u64,
    /// The queue.
    pub queue: Name,
    /// Message ids; those not in the registry are passed over.
    pub ids: Vec<u64>,
    /// What to do.
    pub disposal: Disposal,
}

/// The answer to [`Dispose`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disposed {
    /// How many were in the registry.
    pub count: u64,
}

/// An order of an operator; repeating it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Claims of the queue give nothing until it is resumed.
    Pause(Name),
    /// Claims of the queue go on.
    Resume(Name),
    /// Sessions up to this join number are asked to stop, or all joined so far.
    Stop(Stop, Option<u64>),
}

/// A live session as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// Node or client.
    pub kind: Kind,
    /// Where it runs.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// The queues it works for.
    pub queues: Vec<Name>,
    /// Its lease.
    pub lease_ms: u64,
    /// Its place among all joins.
    pub join_no: u64,
    /// Store time it joined.
    pub joined_ms: u64,
    /// Store time of its last beat.
    pub beat_ms: u64,
    /// Its last report.
    pub report: Bytes,
}

/// A source as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Its name.
    pub name: Name,
    /// The queue it feeds.
    pub queue: Name,
    /// The live session that holds its baton.
    pub holder: Option<SessionId>,
    /// The epoch in force, 0 before the first.
    pub epoch: u64,
    /// Where it stands; empty at the start.
    pub cursor: String,
    /// Whether it has ended.
    pub ended: bool,
}

/// The whole fleet at one instant, without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// By id.
    pub sessions: Vec<SessionView>,
    /// By name.
    pub sources: Vec<SourceView>,
    /// By queue name.
    pub queues: Vec<Books>,
}

/// Reads a result kept by a settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// The queue.
    pub queue: Name,
    /// The message.
    pub id: u64,
}

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

/// Reads the fleet's members, sources and books; see [`Survey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeSurvey;

/// Reads where a bookmark stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBookmark {
    /// The caller's key.
    pub key: Key,
}

/// Counts the data itself, for the deep audit; see [`super::Recounted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// The longest the store may be held still for it.
    pub max_hold_ms: u64,
}

/// Removes everything the fleet has stored; refused while a node has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge;

operations! {
    Join(Join) -> Joined;
    Beat(Beat) -> Beaten;
    Leave(Leave) -> ();
    Take(Take) -> Taken;
    Resign(Resign) -> ();
    Push(Push) -> Pushed;
    Rewind(Rewind) -> ();
    Submit(Submit) -> Submitted;
    Claim(Claim) -> Claimed;
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
            Self::Claim(it) if it.queues.len() > MAX_LOTS => return malformed("a claim names up to 1024 queues"),
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
