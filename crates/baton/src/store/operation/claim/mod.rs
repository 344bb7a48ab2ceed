//! Claiming: messages of a queue are handed to a session.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

#[cfg(feature = "redis")]
pub(in crate::store) use self::redis::Given;
use super::malformed;
use crate::{
    message::{Name, Parcel, SessionId, Span},
    store::{Facts, StoreError},
};

/// The most spans in one claim, a message of a call counting as several, so that no call holds the others up for long.
pub(crate) const MAX_SPANS: usize = 1024;
/// The most messages one claim buries, the end of a cancelled call counting as several, so that no call holds the others up
/// for long.
pub(in crate::store) const MOST_BURIED: u32 = 1024;
/// How far claim numbers may run ahead of the lowest unused one of the same session and queue.
pub const CLAIM_WINDOW: u64 = 64;

/// Asks for messages of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who claims.
    pub session: SessionId,
    /// Where to look.
    pub queue: Name,
    /// A number not used before by this session for this queue, less than [`CLAIM_WINDOW`] beyond the highest used; an
    /// empty claim does not use it.
    pub claim_no: u64,
    /// The most messages.
    pub n: u32,
    /// The most body bytes, though at least one message is given.
    pub max_bytes: u64,
}

/// The answer to [`Claim`]. A repeat gives what is still in flight under the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The queue that was asked for.
    pub queue: Name,
    /// Spans with their bodies, each body parcel cut to its span; none if there was nothing to give.
    pub spans: Vec<(Span, Parcel)>,
    /// What the queue has beyond that.
    pub rest: Rest,
}

/// What a claim has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// There may be more.
    More,
    /// Nothing that this session could have now: it has been entered among those that wait for the queue.
    Nothing {
        /// Milliseconds until the next delayed message is due, if there is one.
        next_due_ms: Option<u64>,
    },
}

impl Facts for Claim {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.n == 0 || self.n > 65_536 || self.claim_no == 0 {
            return malformed("a claim takes 1 to 65536 messages and a number above 0");
        }
        Ok(())
    }
}
