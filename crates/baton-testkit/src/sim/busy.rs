//! Nodes that are kept busy by a source of their own, beside queues that nobody else sees to: whoever generates may leave
//! a queue to others only if there are some who work for it, without a baton, and have a free place.

use baton::Role;

use super::{
    topology::{NodePlan, PushPlan, QueuePlan, SourcePlan, Topology, Trouble},
    work::Work,
};
use crate::soak::random::Random;

/// How long a source keeps its node busy, about, from the start of its node on.
const BUSY_MS: u64 = 8_000;

impl Topology {
    /// Adds some nodes that are busy, with queues and sources of their own; nothing else of the fleet changes.
    pub(super) fn add_busy_nodes(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(2) {
            match random.below(3) {
                0 => self.add_alone(random),
                1 => self.add_all_busy(random),
                _ => self.add_occupied_help(random),
            }
        }
        self.pushes.sort_by_key(|push| push.at_ms);
    }

    /// A busy node is the only one that works for the queue it feeds.
    fn add_alone(&mut self, random: &mut Random) {
        let queue = self.add_queue(Work::Instant);
        let source = self.add_source(queue, random);
        self.add_node(Role::Auto, (queue, 1 + random.below(16)), &[source], random);
    }

    /// Several nodes work for one queue, and a source keeps each of them busy.
    fn add_all_busy(&mut self, random: &mut Random) {
        let queue = self.add_queue(Work::Instant);
        for _ in 0..2 + random.below(2) {
            let source = self.add_source(queue, random);
            self.add_node(Role::Auto, (queue, 1 + random.below(16)), &[source], random);
        }
    }

    /// A node without a source works for the queue too, but its one place is taken for seconds.
    fn add_occupied_help(&mut self, random: &mut Random) {
        let (fed, slow) = (self.add_queue(Work::Instant), self.add_queue(Work::Sleeps { ms: 2_000 }));
        let source = self.add_source(fed, random);
        self.add_node(Role::Auto, (slow, 16), &[source], random);
        self.add_node(Role::Worker, (slow, 1), &[], random);
        self.add_node(Role::Worker, (fed, 16), &[], random);
        let every_ms = 300 + random.below(600);
        let push = |nth: u64| PushPlan { at_ms: 1_000 + nth * every_ms, queue: slow, count: 1 };
        self.pushes.extend((0..BUSY_MS / every_ms).map(push));
    }

    fn add_queue(&mut self, work: Work) -> usize {
        let nth = self.queues.len();
        self.queues.push(QueuePlan { name: format!("q{nth}"), work, retries: 0, backoff_ms: 500 });
        nth
    }

    /// A source that nearly always has a push under way.
    fn add_source(&mut self, queue: usize, random: &mut Random) -> usize {
        let nth = self.sources.len();
        let every_ms = 1 + random.below(2);
        let end = Some(BUSY_MS / every_ms + random.below(500));
        self.sources.push(SourcePlan {
            name: format!("s{nth}"),
            queue,
            every_ms,
            batch: 1,
            end,
            trouble: Trouble::None,
        });
        nth
    }

    fn add_node(&mut self, role: Role, (queue, at_once): (usize, u64), offers: &[usize], random: &mut Random) {
        self.nodes.push(NodePlan {
            role,
            works: vec![(queue, at_once as usize)],
            offers: offers.to_vec(),
            lease_ms: 1_000,
            heartbeat_ms: 200,
            max_queue_bytes: 64 << 20,
            starts_ms: random.below(50),
        });
    }
}
