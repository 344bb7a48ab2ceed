//! Batons: taking, giving back, pushing under one, starting over.

use crate::message::{Name, Parcel, SessionId};

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

/// Forgets a source that no live session offers, its cursor with it; what it pushed stays. One that is not known is
/// left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remove {
    /// The source.
    pub source: Name,
}
