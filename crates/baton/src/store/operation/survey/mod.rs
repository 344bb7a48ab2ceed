//! Surveying: the whole fleet at one instant, without its messages.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use bytes::Bytes;

use crate::{
    message::{Name, SessionId},
    store::{Books, Facts, Kind},
};

/// A live session as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// Node or client.
    pub kind: Kind,
    /// Where it runs.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// The queues it works for.
    pub queues: Vec<Name>,
    /// Its lease.
    pub lease_ms: u64,
    /// Its place among all joins.
    pub join_no: u64,
    /// Store time it joined.
    pub joined_ms: u64,
    /// Store time of its last beat.
    pub beat_ms: u64,
    /// Its last report.
    pub report: Bytes,
}

/// A source as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Its name.
    pub name: Name,
    /// The queue it feeds.
    pub queue: Name,
    /// The live session that holds its baton.
    pub holder: Option<SessionId>,
    /// The epoch in force, 0 before the first.
    pub epoch: u64,
    /// Where it stands; empty at the start.
    pub cursor: String,
    /// Whether it has ended.
    pub ended: bool,
}

/// The whole fleet at one instant, without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// By id.
    pub sessions: Vec<SessionView>,
    /// By name.
    pub sources: Vec<SourceView>,
    /// By queue name.
    pub queues: Vec<Books>,
}

/// Reads the fleet's sessions, sources and books; see [`Survey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeSurvey;

impl Facts for TakeSurvey {
    const READS: bool = true;

    fn session(&self) -> Option<SessionId> {
        None
    }
}
