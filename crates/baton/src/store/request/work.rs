//! Claims, settles and the results they keep.

use crate::message::{Name, Parcel, Piece, Range, Run, SessionId};

/// The most runs in one [`Settle`], and ids in one [`Dispose`](super::Dispose).
pub const MAX_RUNS: usize = 65_536;
/// The most pieces in one claim, so that no call holds the others up for long.
pub const MAX_PIECES: usize = 1024;
/// How far claim numbers may run ahead of the lowest unused one of the same session and queue.
pub const CLAIM_WINDOW: u64 = 64;
/// The longest a retry may be put off.
pub const MAX_RETRY_MS: u64 = 366 * 24 * 3_600_000;
/// How long a result is kept.
pub const RESULT_TTL_MS: u64 = 3_600_000;

/// Asks for messages of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who claims.
    pub session: SessionId,
    /// Where to look.
    pub queue: Name,
    /// A number not used before by this session for this queue, less than [`CLAIM_WINDOW`] beyond the highest used; an
    /// empty claim does not use it.
    pub claim_no: u64,
    /// The most messages.
    pub n: u32,
    /// The most body bytes, though at least one message is given.
    pub max_bytes: u64,
}

/// The answer to [`Claim`]. A repeat gives what is still in flight under the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The queue that was asked for.
    pub queue: Name,
    /// Pieces with their bodies, each body parcel cut to its piece; none if there was nothing to give.
    pub pieces: Vec<(Piece, Parcel)>,
    /// What the queue has beyond that.
    pub rest: Rest,
}

/// What a claim has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// There may be more.
    More,
    /// Nothing that this session could have now: it has been entered among those that wait for the queue.
    Nothing {
        /// Milliseconds until the next delayed message is due, if there is one.
        next_due_ms: Option<u64>,
    },
}

/// Hands a wake-up on: this session waits for the queue no longer, and another one that does is woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Who was woken and has no use for it.
    pub session: SessionId,
    /// The queue.
    pub queue: Name,
}

/// Asks which of the queues a session works for are worth a claim, so that a lost wake-up costs a second at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Who asks.
    pub session: SessionId,
}

/// The answer to [`Look`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// By name, with the milliseconds until there is something: none if there is now, or if the session is not entered
    /// among those that wait.
    pub queues: Vec<(Name, u64)>,
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
    /// Runs that were refused, as (queue, claim number, messages).
    pub refused: Vec<(Name, u64, Range)>,
}

/// Reads a result kept by a settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// The queue.
    pub queue: Name,
    /// The message.
    pub id: u64,
}
