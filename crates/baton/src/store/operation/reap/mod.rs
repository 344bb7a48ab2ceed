//! Reaping: what a session past its lease holds is taken back.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use std::collections::BTreeMap;

use crate::{
    message::{Name, SessionId},
    store::{Facts, Kind},
};

/// Takes back what a session past its lease holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reap {
    /// Who asks.
    pub session: SessionId,
    /// Who is to be reaped.
    pub target: SessionId,
}

/// The most entries of lines that one call to a real store makes of what a session held; what is left then is an unreaped.
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub(in crate::store) const RETURNED_AT_ONCE: u64 = 1_000;

/// The answer to [`Reap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaped {
    /// It was lost. Its messages went back or, with their crashes used up, to the errors.
    Taken(Lost),
    /// Its lease has not run out.
    Alive,
    /// There is no such session (any more).
    Gone,
}

impl Reaped {
    /// How many messages went back and how many failed, if something was taken.
    #[must_use]
    pub fn counts(&self) -> Option<(u64, u64)> {
        match self {
            Self::Taken(lost) => Some((lost.back.values().sum(), lost.failed)),
            Self::Alive | Self::Gone => None,
        }
    }
}

/// A session that was lost, and what became of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Whether it was a node.
    pub kind: Kind,
    /// Where it ran: host and process id, as `host/7`.
    pub node: String,
    /// Milliseconds of the fleet clock since its last sign of life; nothing if another process began to reap it.
    pub silent_ms: Option<u64>,
    /// Messages back in each queue.
    pub back: BTreeMap<Name, u64>,
    /// Messages among the errors.
    pub failed: u64,
}

impl Lost {
    /// Adds a later part of what it held.
    #[cfg(any(feature = "redis", feature = "sqlite"))]
    pub(in crate::store) fn add(&mut self, later: Self) {
        for (queue, count) in later.back {
            *self.back.entry(queue).or_default() += count;
        }
        self.failed += later.failed;
    }
}

impl Facts for Reap {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
