//! What the scene knows of nodes, sessions and sources.

use std::collections::BTreeMap;

use baton::{Role, SessionId};

/// A rule that was broken.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) at_ms: u64,
    pub(super) rule: String,
    /// The message it is about.
    pub(super) about: Option<(usize, u64)>,
}

/// A node, over all its lives.
#[derive(Debug)]
pub(super) struct KnownNode {
    pub(super) role: Role,
    pub(super) lease_ms: u64,
    pub(super) heartbeat_ms: u64,
    pub(super) offers: Vec<usize>,
    /// Its handlers, by queue.
    pub(super) handlers: BTreeMap<usize, Handlers>,
    pub(super) life: u32,
    pub(super) alive: bool,
    pub(super) paused: bool,
    /// When it was asked to finish and leave.
    pub(super) leaving_since: Option<u64>,
    pub(super) session: Option<SessionId>,
    pub(super) joined_ms: u64,
    /// Until when faults on its way to the store explain that it is slow.
    pub(super) disturbed_until: u64,
    /// When the last of its handlers ends.
    pub(super) busy_until: u64,
    /// When a push of it last began or ended.
    pub(super) pushed_ms: u64,
    /// Calls since the last look.
    pub(super) calls: u64,
}

/// The handlers of one queue in one node.
#[derive(Debug)]
pub(super) struct Handlers {
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Since when there has been a free place, without a break.
    pub(super) free_since: u64,
}

/// A session as the store's answers tell of it.
#[derive(Debug)]
pub(super) struct KnownSession {
    /// The node that began it.
    pub(super) node: Option<usize>,
    /// The queues it works for, if it is a node's.
    pub(super) works: Vec<usize>,
    pub(super) lease_ms: u64,
    pub(super) touched_ms: u64,
    pub(super) gone: bool,
    /// The last report taken.
    pub(super) settle_no: u64,
}

/// A source as it is seen from everywhere at once.
#[derive(Debug, Default)]
pub(super) struct KnownSource {
    pub(super) queue: usize,
    /// Where it ends, if it does.
    pub(super) end: Option<u64>,
    pub(super) opens: u64,
    /// Where it is open.
    pub(super) open: Vec<(usize, u32)>,
    pub(super) generated_ms: u64,
    pub(super) failed_ms: Option<u64>,
    pub(super) holder: Option<SessionId>,
    pub(super) epoch: u64,
    pub(super) position: u64,
    pub(super) ended: bool,
}
