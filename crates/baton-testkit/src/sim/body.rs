//! Bodies of a drawn fleet: each follows from the seed and from where it came, so that whoever knows the fleet can tell
//! which messages there must be.

use serde::{Deserialize, Serialize};

use super::{
    chance::{digest, drawn},
    topology::{SourcePlan, Topology},
};

/// What every message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Body {
    /// The queue it belongs to.
    pub(crate) queue: usize,
    /// How many follow-ups lie before it.
    pub(crate) depth: u32,
    /// Tells it from all others.
    pub(crate) unique: u64,
}

impl Body {
    /// The messages that are pushed at one of the drawn moments.
    pub(crate) fn pushed_at(topology: &Topology, moment: usize) -> Vec<Self> {
        let push = topology.pushes[moment];
        let unique = |of: u64| drawn(topology.seed, &[moment as u64, of, 6], 0);
        (0..push.count).map(|of| Self { queue: push.queue, depth: 0, unique: unique(of) }).collect()
    }

    /// The message of a source at a position.
    pub(crate) fn generated(seed: u64, source: usize, plan: &SourcePlan, position: u64) -> Self {
        Self { queue: plan.queue, depth: 0, unique: drawn(seed, &[source as u64, position, 5], 0) }
    }

    /// One of the messages that follow this one.
    pub(crate) fn follow_up(self, seed: u64, to: usize, nth: u64) -> Self {
        let unique = drawn(seed, &[digest(&self.bytes()), nth], 0);
        Self { queue: to, depth: self.depth + 1, unique }
    }

    /// As it is stored.
    pub(crate) fn bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("numbers")
    }
}
