//! Reading a bookmark: where a long input stands.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Digest, Key, SessionId},
    store::Facts,
};

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

/// Reads where a bookmark stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBookmark {
    /// The caller's key.
    pub key: Key,
}

impl Facts for ReadBookmark {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
