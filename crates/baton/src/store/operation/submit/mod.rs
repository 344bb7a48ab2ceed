//! Submitting: messages from outside, their idempotency keys, and a bookmark that moves with them.

#[cfg(feature = "memory")]
mod engine;
mod kept;
#[cfg(feature = "redis")]
mod redis;

use super::malformed;
use crate::{
    message::{Calling, Key, SessionId, Submission},
    store::{Facts, Place, StoreError},
};

/// Moves a bookmark in the same step as the submissions it speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveBookmark {
    /// The caller's key.
    pub key: Key,
    /// Where it must stand.
    pub from: Place,
    /// Where it stands afterwards.
    pub to: Place,
}

/// Messages from outside. Serial per session with up to [`SUBMIT_WINDOW`] repeats; each submission is judged on its own,
/// except under a bookmark, where a full queue refuses all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// Who submits.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub submit_no: u64,
    /// At most [`MAX_LOTS`]; none if its number is to stand for nothing.
    pub submissions: Vec<Submission>,
    /// A bookmark to move with them.
    pub bookmark: Option<MoveBookmark>,
    /// Bytes a queue may hold before FULL.
    pub max_queue_bytes: u64,
    /// Idempotency keys that may live before new ones are refused; [`MAX_KEYS`] unless somebody says otherwise.
    pub max_keys: u64,
}

/// The most submissions in one [`Submit`].
pub const MAX_LOTS: usize = 1024;
/// How many submits may be under way at once: so many answers are kept.
pub const SUBMIT_WINDOW: u64 = 16;
/// How many answers to submits one list of them holds in Redis. A list is begun for every so many numbers, and two are
/// kept.
#[cfg(feature = "redis")]
const SUBMIT_PAGE: u64 = 64;
/// Idempotency keys that may live at once unless a client says otherwise; over that, new ones are refused and none is
/// dropped early.
pub const MAX_KEYS: u64 = 1_000_000;
/// How long an idempotency key lives unless a client says otherwise.
pub const KEY_TTL_MS: u64 = 24 * 3_600_000;
/// The longest an idempotency key may live.
pub const MAX_KEY_TTL_MS: u64 = 366 * 24 * 3_600_000;
/// How many keys that expired are forgotten for each that comes: they go faster than they came.
pub(super) const EXPIRED_A_KEY: u32 = 2;

/// How many short messages pushed singly may lie in the inbox of a queue in Redis: a call takes in so many at most.
#[cfg(feature = "redis")]
const MAX_INBOX: u64 = 128;

/// What became of one submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionVerdict {
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
    /// Stored as the first message of a call.
    Begun {
        /// Its id.
        first: u64,
        /// When the store took it in: with the id its name, also when ids begin again.
        born: u64,
    },
    /// The key of a call was seen with this body: it exists under this name.
    Known {
        /// The id of its first message.
        first: u64,
        /// When the store took that in.
        born: u64,
    },
    /// The key was seen with another body, or for another queue.
    Conflict,
    /// No further key can be kept now.
    KeysFull,
    /// The queue is full; so is it for all later lots of this call.
    Full,
}

/// The answer to [`Submit`]: a verdict a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// In the order of the submissions; fewer if there was no room on the disk for those behind, which are not stored.
    pub submissions: Vec<SubmissionVerdict>,
}

/// What holds for a key, and for a call, wherever its submission comes in.
pub(super) fn check_keys(submissions: &[Submission]) -> Result<(), StoreError> {
    if submissions.iter().any(|submission| submission.call.is_some() && submission.parcel.len() != 1) {
        return malformed("a submission that is of a call holds one message");
    }
    for (submission, key) in submissions.iter().filter_map(|submission| Some((submission, submission.key.as_ref()?))) {
        if submission.parcel.len() != 1 {
            return malformed("a keyed submission holds one message");
        }
        if !(1..=MAX_KEY_TTL_MS).contains(&key.lives_ms) {
            return malformed("a key lives for a millisecond to 366 days");
        }
    }
    Ok(())
}

impl Facts for Submit {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.submissions.len() > MAX_LOTS {
            return malformed("a submit takes 1024 submissions at most");
        }
        check_keys(&self.submissions)?;
        if self.submissions.iter().any(|submission| submission.call == Some(Calling::Joins)) {
            return malformed("only follow-ups join a call");
        }
        // A submission that its key keeps out would be passed over by the bookmark for ever.
        if self.bookmark.is_some() && self.submissions.iter().any(|submission| submission.key.is_some()) {
            return malformed("a bookmark goes with submissions that have no key");
        }
        Ok(())
    }

    fn new_bodies(&self) -> Option<usize> {
        Some(self.submissions.iter().map(|submission| submission.parcel.bytes().len()).sum())
    }
}
