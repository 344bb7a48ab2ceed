//! Remembering: what was computed is handed in.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use super::malformed;
use crate::{
    message::{CacheKey, SessionId},
    store::{Facts, StoreError},
};

/// Hands in what came of a computation that the session had the right to. Whoever has not, or whose computation began before
/// something was forgotten that covers the key, keeps nothing; either way the right to compute is over and those who wait are woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePut {
    /// Who computed.
    pub session: SessionId,
    /// The key.
    pub key: CacheKey,
    /// The number of the right to compute.
    pub number: u64,
    /// What came of it.
    pub outcome: Computed,
    /// For how long that is kept, on the fleet clock.
    pub ttl_ms: u64,
    /// Bytes that all values kept in the fleet may take before the oldest go; of one it is an eighth.
    pub max_bytes: u64,
}

/// What came of a computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Computed {
    /// A value.
    Value(Bytes),
    /// An error, by its text.
    Error(String),
    /// A value that may not be kept: whoever asks for the key meanwhile computes alone.
    Pass,
}

/// The answer to [`CachePut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePutReply {
    /// It is kept, and valid at this generation.
    Kept {
        /// The generation.
        generation: u64,
    },
    /// It is not kept: it was too large, or may not be; those who ask compute alone.
    Passed,
    /// It is not kept: the right to compute was another's by now, or something was forgotten since it began.
    Dropped,
}

/// The most bytes of a value that the store keeps.
pub const MAX_CACHED_BYTES: usize = 1 << 20;
/// The longest that something is kept.
pub const MAX_CACHED_MS: u64 = 366 * 86_400_000;
/// What a value counts for beside its bytes and those of its key.
pub(in crate::store) const A_CACHED: u64 = 256;

impl Facts for CachePut {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        let bytes = match &self.outcome {
            Computed::Value(value) => value.len(),
            Computed::Error(error) => error.len(),
            Computed::Pass => 0,
        };
        if bytes > MAX_CACHED_BYTES || self.ttl_ms > MAX_CACHED_MS {
            return malformed("what is remembered has up to 1 MiB and is kept for up to 366 days");
        }
        if self.key.check().is_err() {
            return malformed("a key of what is cached has up to 16 parts and 1,024 bytes");
        }
        Ok(())
    }

    fn new_bodies(&self) -> Option<usize> {
        match &self.outcome {
            Computed::Value(value) => Some(value.len()),
            Computed::Error(error) => Some(error.len()),
            Computed::Pass => None,
        }
    }
}
