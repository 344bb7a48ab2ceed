//! What a caller knows of its own session: just enough to ask sensible things.

use std::collections::BTreeMap;

use baton::{Name, SessionId, store::message::Span};

/// A session in the machine.
#[derive(Debug, Clone)]
pub(super) struct KnownSession {
    pub(super) id: SessionId,
    /// Whether the store does not know it: not joined yet, or found to be stale.
    pub(super) over: bool,
    pub(super) submit_no: u64,
    pub(super) settle_no: u64,
    pub(super) dispose_no: u64,
    /// The highest claim number used, by queue.
    pub(super) claim_nos: BTreeMap<Name, u64>,
    pub(super) claims: BTreeMap<(Name, u64), Vec<Span>>,
    pub(super) batons: BTreeMap<Name, Baton>,
    /// How many events messages have told, by queue, id and claim.
    pub(super) told: BTreeMap<(Name, u64, u64), u64>,
}

/// A baton as its holder knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Baton {
    pub(super) epoch: u64,
    pub(super) batch_no: u64,
    pub(super) cursor: String,
}

impl KnownSession {
    pub(super) const fn new(id: SessionId) -> Self {
        Self {
            id,
            over: false,
            submit_no: 0,
            settle_no: 0,
            dispose_no: 0,
            claim_nos: BTreeMap::new(),
            claims: BTreeMap::new(),
            batons: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }
}
