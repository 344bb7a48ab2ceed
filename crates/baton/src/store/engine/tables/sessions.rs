//! Sessions, and the answers kept for them.

use bytes::Bytes;

use super::Moved;
use crate::{
    message::{Name, SessionId},
    store::{Kind, Offer},
};

/// A session as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    pub(crate) kind: Kind,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) queues: Vec<Name>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) lease_ms: u64,
    /// Its place among all joins.
    pub(crate) join_no: u64,
    pub(crate) joined_ms: u64,
    pub(crate) beat_ms: u64,
    pub(crate) report: Bytes,
    /// Fleet clock at which it may be reaped.
    pub(crate) expires: u64,
    /// Suspects it holds: never more than one.
    pub(crate) suspects: u32,
    pub(crate) settle_no: u64,
    pub(crate) submit_no: u64,
    pub(crate) dispose_no: u64,
}

/// What is to be known of a session that is over while its claims are not all back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreapedClaims {
    /// Whose they were, for people.
    pub(crate) node: String,
    /// Whether a crash counts for each message.
    pub(crate) lost: bool,
}

/// Numbered calls whose answers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Series {
    Submit,
    Settle,
    Dispose,
}

/// Who is there, until when, and what was answered.
pub(crate) trait Sessions {
    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>>;
    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()>;
    /// Removes the session with its answers and claim numbers; its places among those who wait must be gone, and its
    /// claims unless they are an unreaped.
    fn drop_session(&mut self, id: SessionId) -> Moved<()>;
    /// All sessions by id.
    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>>;
    /// The most entries of lines that one call makes of what a session held.
    fn returned_at_once(&self) -> u64;
    fn unreaped(&mut self, id: SessionId) -> Moved<Option<UnreapedClaims>>;
    /// Notes an unreaped, or that nothing is left of it.
    fn put_unreaped(&mut self, id: SessionId, unreaped: Option<&UnreapedClaims>) -> Moved<()>;
    /// Whose unreaped there are, by id.
    fn unreaped_sessions(&mut self) -> Moved<Vec<SessionId>>;
    /// Unreaped by id, then sessions whose lease is over at `clock`, by (expiry, id).
    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>>;
    fn smallest_lease(&mut self) -> Moved<Option<u64>>;
    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>>;
    /// Keeps an answer and forgets the one `keep` numbers before it.
    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()>;
}
