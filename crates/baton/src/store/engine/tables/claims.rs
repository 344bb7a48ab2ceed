//! What sessions hold, and under which numbers.

use super::Moved;
use crate::message::{Name, SessionId, Span};

/// The claim numbers of one session for one queue: the highest used, and those below it that were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClaimNumbers {
    pub(crate) high: u64,
    pub(crate) holes: Vec<u64>,
}

/// What a claim number holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimRecord {
    pub(crate) queue: Name,
    pub(crate) spans: Vec<Span>,
}

/// Claims and their numbers.
pub(crate) trait Claims {
    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>>;
    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()>;
    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()>;
    /// All claims of a session by queue and number.
    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>>;
    /// The last of them.
    fn last_claim(&mut self, id: SessionId) -> Moved<Option<(u64, ClaimRecord)>>;
    /// The first `limit` of them without what they hold.
    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>>;
    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers>;
    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()>;
}
