//! What belongs to the fleet as a whole.

use super::Moved;
use crate::{message::SessionId, store::Stop};

/// What belongs to the fleet as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) incarnation: String,
    /// The fleet clock: runs only while sessions call, and never faster than half the smallest lease a call.
    pub(crate) clock: u64,
    /// Store time when the clock was last advanced.
    pub(crate) last: u64,
    /// Sessions joined ever; orders them.
    pub(crate) joins: u64,
    /// Sessions up to this join are asked to stop.
    pub(crate) stop: Option<(u64, Stop)>,
}

impl Meta {
    /// The beginning of a fleet.
    pub(crate) fn new() -> Self {
        Self { incarnation: SessionId::random().to_string(), clock: 0, last: 0, joins: 0, stop: None }
    }
}

/// The fleet's own record, and everything at once.
pub(crate) trait Fleet {
    fn meta(&mut self) -> Moved<Meta>;
    fn put_meta(&mut self, meta: &Meta) -> Moved<()>;
    /// Removes everything, back to a store never used.
    fn clear(&mut self) -> Moved<()>;
}
