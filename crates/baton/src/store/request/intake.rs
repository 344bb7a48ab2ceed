//! Messages from outside: submits, idempotency keys, bookmarks.

use crate::message::{Digest, Key, Lot, SessionId};

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
/// How many submits may be under way at once: so many answers are kept.
pub const SUBMIT_WINDOW: u64 = 16;
/// The most idempotency keys kept at once; over that, new ones are refused and none is dropped early.
pub const MAX_KEYS: u64 = 1_000_000;
/// How long an idempotency key is kept.
pub const KEY_TTL_MS: u64 = 24 * 3_600_000;

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
    /// The key was seen with another body, or for another queue.
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

/// Reads where a bookmark stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBookmark {
    /// The caller's key.
    pub key: Key,
}
