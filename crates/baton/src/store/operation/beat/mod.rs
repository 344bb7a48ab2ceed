//! Beating: a session shows that it lives and hears what the fleet wants of it.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use super::malformed;
use crate::{
    message::{CallId, Name, SessionId},
    store::{Facts, MAX_LOTS, Stop, StoreError},
};

/// Extends the lease and tells what the fleet wants of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The session.
    pub session: SessionId,
    /// Rates and latencies for `status` and `stats`; opaque to the store.
    pub report: Bytes,
    /// Queues of which a busy holder of a baton asks whether others see to them.
    pub asks: Vec<Name>,
}

/// The answer to [`Beat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beaten {
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// Offered sources that nobody runs: take one.
    pub due: Vec<Name>,
    /// Batons the session holds, with their epochs; one it does not run, it resigns.
    pub held: Vec<(Name, u64)>,
    /// Sessions past their lease, at most [`MAX_REPORTED_EXPIRED`]: reap them.
    pub expired: Vec<SessionId>,
    /// Claims under which it holds messages, by queue and number: one it does not know, it repeats to get them. At most
    /// [`MAX_REPORTED_CLAIMS`] of them.
    pub claims: Vec<(Name, u64)>,
    /// Those of the queues asked about that a session without a baton works for and that give nobody reason to wait:
    /// whatever is claimable in them has been so for less than [`PATIENCE_MS`].
    pub helped: Vec<Name>,
    /// Whether it is asked to stop.
    pub stop: Option<Stop>,
    /// Calls that were cancelled, of which it holds messages: it ends its work on them and hands them back. At most
    /// [`MAX_REPORTED_CANCELLED`].
    pub cancelled: Vec<CallId>,
    /// Calls that may have been without a follower for as long as they said, at most [`MAX_REPORTED_EXPIRED`]: cancel those
    /// that have ([`CancelCall`](super::CancelCall)).
    pub forsaken: Vec<CallId>,
    /// How often something was forgotten ([`Invalidate`](super::Invalidate)).
    pub generation: u64,
}

/// The most claims told in one [`Beaten`].
pub const MAX_REPORTED_CLAIMS: usize = 1_000;
/// The most cancelled calls told in one [`Beaten`].
pub const MAX_REPORTED_CANCELLED: usize = 1_000;
/// The most sessions past their lease told in one [`Beaten`].
pub const MAX_REPORTED_EXPIRED: usize = 16;
/// How long the front of a queue may wait before a busy holder of a baton works too.
pub const PATIENCE_MS: u64 = 500;

impl Facts for Beat {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.asks.len() > MAX_LOTS {
            return malformed("a beat asks about up to 1024 queues");
        }
        Ok(())
    }
}
