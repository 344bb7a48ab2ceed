//! Claims, settles and the results they keep.

use crate::message::{Name, Parcel, Piece, Range, Run, SessionId};

/// The most runs in one [`Settle`], and ids in one [`Dispose`](super::Dispose).
pub const MAX_RUNS: usize = 65_536;
/// The most pieces in one claim, so that no call holds the others up for long.
pub const MAX_PIECES: usize = 1024;
/// How far claim numbers may run ahead of the lowest unused one.
pub const CLAIM_WINDOW: u64 = 64;
/// The longest a retry may be put off.
pub const MAX_RETRY_MS: u64 = 366 * 24 * 3_600_000;
/// How long a result is kept.
pub const RESULT_TTL_MS: u64 = 3_600_000;

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

/// Reads a result kept by a settle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadResult {
    /// The queue.
    pub queue: Name,
    /// The message.
    pub id: u64,
}
