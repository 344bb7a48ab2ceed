//! Pushing: a batch of a source under its baton.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use super::malformed;
use crate::{
    message::{Name, Parcel, SessionId},
    store::{Facts, MAX_LOTS, StoreError},
};

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
    pub max_queue_bytes: u64,
}

/// The answer to [`Push`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The first id of each parcel; empty for a repeat of an older batch.
    pub firsts: Vec<u64>,
    /// Whether the batch had been taken before.
    pub duplicate: bool,
}

impl Facts for Push {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.parcels.len() > MAX_LOTS {
            return malformed("a push takes up to 1024 parcels");
        }
        Ok(())
    }

    fn new_bodies(&self) -> Option<usize> {
        Some(self.parcels.iter().map(|parcel| parcel.bytes().len()).sum())
    }
}
