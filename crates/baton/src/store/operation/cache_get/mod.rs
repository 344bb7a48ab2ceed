//! Recollecting: the value of a key, or the right to compute it.

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

/// Reads the value kept under a key. Where there is none that is valid, the session is given the right to compute it, or
/// waits for the one that has it. Repeating it answers the same as long as nothing else has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheGet {
    /// Who asks.
    pub session: SessionId,
    /// The key.
    pub key: CacheKey,
    /// What a right to compute of its own would be known by, and what it is woken with if it waits.
    pub number: u64,
    /// How long a right to compute of its own is waited for, on the fleet clock: longer than its computation may take.
    pub lasts_ms: u64,
}

/// The answer to [`CacheGet`]. The generation is the store's at this moment: nothing forgotten up to it covers what is
/// given, or what is computed from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheGetReply {
    /// A value, or an error that is still held.
    Found {
        /// The value; the text of the error.
        value: Bytes,
        /// Whether it is an error.
        is_error: bool,
        /// At which it is valid.
        generation: u64,
        /// Since it was made, and until it expires, on the fleet clock.
        age_ms: u64,
        /// Until it expires.
        left_ms: u64,
    },
    /// The session may compute it, and hand it in.
    Lead {
        /// At which it begins.
        generation: u64,
    },
    /// Another one computes it: whoever asked is woken when it has ended.
    Wait {
        /// At which it asked.
        generation: u64,
    },
    /// Whoever asks computes it, and keeps nothing in the store: its values may not be kept, or the session has the right
    /// to compute [`MAX_COMPUTE_RIGHTS`] others.
    Alone {
        /// At which it begins.
        generation: u64,
    },
}

/// The most keys of which a session has the right to compute the value.
pub const MAX_COMPUTE_RIGHTS: u64 = 128;
/// The most sessions that wait for one key; further ones compute alone.
pub const MAX_AWAITING: u64 = 1024;

impl Facts for CacheGet {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.key.check().is_err() {
            return malformed("a key of what is cached has up to 16 parts and 1,024 bytes");
        }
        Ok(())
    }
}
