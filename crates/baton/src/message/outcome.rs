//! What a worker reports of claimed messages, and what callers hand in.

use bytes::Bytes;

use super::{Calling, Digest, Key, Name, Parcel, Range};

/// How messages of a claim ended; a type, never a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Finished. A result belongs to a run of one message; follow-ups are pushed in the same step.
    Done {
        /// JSON kept for whoever asks, one message only.
        result: Option<Bytes>,
        /// Messages that exist if and only if this settle counts.
        follow_ups: Vec<Submission>,
    },
    /// Failed, to be tried again; counts an attempt.
    Retry {
        /// Milliseconds until it is due.
        after_ms: u64,
        /// Why, for a person to read: kept with the message until its next attempt ends, at most
        /// [`MAX_LAST_ERROR_BYTES`](super::MAX_LAST_ERROR_BYTES); empty if there is nothing to say.
        error: String,
    },
    /// Failed for good: to the errors; counts an attempt.
    Failed {
        /// Why, for a person to read.
        error: String,
    },
    /// Not run: back to the front, no attempt and no loss counted.
    Back,
}

impl Outcome {
    /// Finished, with nothing to keep.
    pub const DONE: Self = Self::Done { result: None, follow_ups: Vec::new() };

    /// The bytes of what it brings: its result and its follow-ups.
    pub(crate) fn brings(&self) -> usize {
        let Self::Done { result, follow_ups } = self else { return 0 };
        let follow_ups: usize = follow_ups.iter().map(|submission| submission.parcel.bytes().len()).sum();
        follow_ups + result.as_ref().map_or(0, Bytes::len)
    }

    /// Whether it brings messages.
    #[cfg(feature = "redis")]
    pub(crate) fn has_follow_ups(&self) -> bool {
        matches!(self, Self::Done { follow_ups, .. } if !follow_ups.is_empty())
    }
}

/// One outcome for consecutive messages of one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The claim that holds them.
    pub claim_no: u64,
    /// The queue of that claim; a refused run is counted there.
    pub queue: Name,
    /// Which messages.
    pub range: Range,
    /// How they ended.
    pub outcome: Outcome,
}

/// A parcel on its way into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The queue it goes to.
    pub queue: Name,
    /// The messages.
    pub parcel: Parcel,
    /// Set for a message that must exist once however often it is handed in; the parcel then holds one message.
    pub key: Option<SubmissionKey>,
    /// Set for a message that begins or joins a call; the parcel then holds one message.
    pub call: Option<Calling>,
}

/// A caller's promise that two messages are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionKey {
    /// The caller's key.
    pub key: Key,
    /// The digest of the body, so that the same key with another body is noticed.
    pub digest: Digest,
    /// How long the key is kept: until then the message exists once.
    pub lives_ms: u64,
}
