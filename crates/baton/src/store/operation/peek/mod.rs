//! Peeking: errors are read in the order they came.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use crate::{
    message::{Headers, MessageId, Name, SessionId},
    store::Facts,
};

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
    /// The most bytes of bodies, headers and error texts, though at least one error is given.
    pub max_bytes: u64,
}

/// A message among the errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRecord {
    /// Its place among the errors of its queue.
    pub seq: u64,
    /// Its id.
    pub id: MessageId,
    /// Attempts that ended with an error.
    pub attempts: u32,
    /// Sessions that died with it.
    pub crashes: u32,
    /// Store time of its push.
    pub born: u64,
    /// Store time of its death.
    pub at: u64,
    /// Where it ran last, as `host/pid`.
    pub node: String,
    /// Why it failed.
    pub error: String,
    /// Its headers, among them why the attempt before the last one failed, if that was told.
    pub headers: Headers,
    /// Its body; empty if that was missing, which no JSON is.
    pub body: Bytes,
}

impl ErrorRecord {
    /// What it counts for against the byte bound of a page.
    #[must_use]
    pub const fn weight(&self) -> u64 {
        (self.body.len() + self.headers.byte_len() + self.error.len()) as u64
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
    pub errors: Vec<ErrorRecord>,
}

impl Facts for Peek {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
