//! All bounds of a gateway, and how many connections the system lets it have.

use std::time::Duration;

use baton::{builtin::subset_sum::SearchOptions, deferred::Bounds};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The bounds. Those who test may make them small.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once; fewer where the system allows fewer open files. Further ones get 503 and are closed.
    pub connections: usize,
    /// Requests being answered at once, streams apart. A peer, which is the bearer of a token or else an address, gets
    /// half of them at most, and some are always left for another peer.
    pub requests: usize,
    /// Bytes of request bodies held at once; of them too a peer gets half at most. At least twice the longest message.
    pub body_bytes: usize,
    /// The longest message.
    pub message_bytes: usize,
    /// How deep arrays and objects may lie in each other.
    pub depth: usize,
    /// How long the head of a request may take, from the last answer or the begin of the connection: so long may a
    /// connection be silent.
    pub head_time: Duration,
    /// How long a message may take to come in.
    pub body_time: Duration,
    /// How long the store may take for a message; after that the answer is that the message may be stored.
    pub store_time: Duration,
    /// How many requests, and how many bytes of theirs, may wait for a store that is away, and how long. Fewer than
    /// `requests`, so that others are answered meanwhile.
    pub waiting: Bounds,
    /// Subset sums searched in the gateway's own threads at once: each holds up what else its thread does by 2 ms a
    /// turn.
    pub searches: usize,
    /// How long a subset sum may take, its reader's pauses included.
    pub search_time: Duration,
    /// How long a peer may read nothing of what is being sent to it.
    pub stall_time: Duration,
    /// How long what is under way may take when the gateway stops.
    pub stop_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            requests: 2048,
            body_bytes: 64 << 20,
            message_bytes: baton::store::message::MAX_BODY_BYTES,
            depth: 128,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            store_time: Duration::from_secs(10),
            waiting: Bounds { calls: 512, bytes: 16 << 20, patience: Duration::from_secs(15) },
            searches: 4,
            search_time: SearchOptions::default().timeout(),
            stall_time: Duration::from_secs(60),
            stop_time: Duration::from_secs(5),
        }
    }
}

/// Header fields of a request, and bytes of its head.
pub(crate) const HEADERS: usize = 64;
pub(crate) const HEAD_BYTES: usize = 16 << 10;
/// Open files that are left to the store, to children and to whatever else the process does.
const FILES_BESIDE: u64 = 512;

/// Raises the limit of open files as far as it is needed and allowed; how many connections there may be then.
pub(crate) fn make_room(connections: usize) -> usize {
    let needed = (connections as u64).saturating_add(FILES_BESIDE);
    let limit = getrlimit(Resource::Nofile);
    let Some(mut current) = limit.current else { return connections };
    if current < needed {
        let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }).is_ok() {
            current = current.max(raised);
        }
    }
    // With very few files half of them are left.
    let allowed = current.saturating_sub(FILES_BESIDE).max(current / 2);
    connections.min(usize::try_from(allowed).unwrap_or(usize::MAX))
}
