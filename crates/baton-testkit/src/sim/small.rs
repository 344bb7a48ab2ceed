//! Fleets that are small and short enough for real processes on real stores, drawn as all others are.

use baton::Role;

use super::{
    topology::{FaultPlan, NodePlan, PushPlan, QueuePlan, SimFault, SourcePlan, Topology, faults, node, pushes, queue},
    work::Work,
};
use crate::soak::random::Random;

/// What times are drawn for; all of them are cut down from this to the length of the fleet.
const DRAWN_MS: u64 = 60_000;
/// The pause of a source that gives nothing while its fleet lives.
const A_DAY_MS: u64 = 86_400_000;

impl Topology {
    /// The fleet of a seed for real time: 2 to 4 nodes, 1 to 6 queues, up to 3 sources, some seconds. One queue in three
    /// burns CPU. Something is always pushed. Every source is offered by a node that may generate, and at least one node is killed.
    #[must_use]
    pub fn small(seed: u64) -> Self {
        let random = &mut Random::part(seed, 4);
        let (node_count, queue_count, source_count) = (2 + random.below(3), 1 + random.below(6), random.below(4));
        let length_ms = 1_500 + random.below(1_500);
        let cut = |ms: u64| ms * length_ms / DRAWN_MS;
        let queues = (0..queue_count).map(|nth| shorter_work(queue(seed, nth, queue_count, random), random)).collect();
        let sources: Vec<SourcePlan> =
            (0..source_count).map(|nth| shorter_source(super::topology::source(nth, queue_count, random))).collect();
        let mut nodes: Vec<NodePlan> =
            (0..node_count).map(|nth| node(nth, queue_count, source_count, &[1_000], random)).collect();
        for plan in &mut nodes {
            plan.starts_ms = cut(plan.starts_ms);
        }
        offer_all(&mut nodes, source_count as usize, random);
        let mut pushes: Vec<PushPlan> = pushes(queue_count, DRAWN_MS, random);
        if pushes.is_empty() {
            let bulk = |queue| PushPlan { at_ms: random.below(DRAWN_MS), queue, count: 1 + random.below(150) };
            pushes = (0..queue_count as usize).map(bulk).collect();
            pushes.sort_by_key(|push| push.at_ms);
        }
        for push in &mut pushes {
            (push.at_ms, push.count) = (cut(push.at_ms).min(length_ms), push.count.min(150));
        }
        let mut faults: Vec<FaultPlan> =
            faults(node_count, queue_count, DRAWN_MS, random).into_iter().filter_map(shorter_fault).take(5).collect();
        if !faults.iter().any(|it| matches!(it.fault, SimFault::Kill { .. })) {
            let fault = SimFault::Kill { node: random.below(node_count) as usize, back_after: Some(0) };
            faults.push(FaultPlan { at_ms: random.below(DRAWN_MS), fault });
        }
        for fault in &mut faults {
            fault.at_ms = cut(fault.at_ms);
        }
        faults.sort_by_key(|fault| fault.at_ms);
        Self { seed, length_ms, nodes, queues, sources, pushes, faults }
    }
}

impl SourcePlan {
    /// Whether it gives something while a fleet lives.
    pub(crate) const fn is_lively(&self) -> bool {
        self.every_ms < A_DAY_MS
    }
}

fn shorter_work(plan: QueuePlan, random: &mut Random) -> QueuePlan {
    let work = match plan.work {
        _ if random.below(3) == 0 => Work::Burns { ms: 1 + random.below(6) },
        Work::Sleeps { ms } => Work::Sleeps { ms: 1 + ms / 8 },
        Work::Uneven { slow_ms } => Work::Uneven { slow_ms: slow_ms / 10 },
        Work::Postpones { ms, times } => Work::Postpones { ms: ms / 8, times },
        other => other,
    };
    QueuePlan { work, backoff_ms: plan.backoff_ms / 4, ..plan }
}

fn shorter_source(plan: SourcePlan) -> SourcePlan {
    let every_ms = match plan.every_ms {
        A_DAY_MS => A_DAY_MS,
        long @ 10_000.. => long / 20,
        to_an_end if plan.end.is_some() => to_an_end / 20,
        steady => steady / 4,
    };
    SourcePlan { every_ms, end: plan.end.map(|end| end.min(300)), ..plan }
}

/// The faults that can be thrown at processes and at their store; whoever is gone comes back.
fn shorter_fault(plan: FaultPlan) -> Option<FaultPlan> {
    let fault = match plan.fault {
        kept @ (SimFault::Kill { .. } | SimFault::Drain { .. } | SimFault::Lossy { .. }) => kept,
        SimFault::Pause { node, ms } => SimFault::Pause { node, ms: ms / 2 },
        SimFault::Stall { ms } => SimFault::Stall { ms: ms / 8 },
        SimFault::HoldQueue { queue, ms } => SimFault::HoldQueue { queue, ms: ms / 5 },
        SimFault::Late { .. } => return None,
    };
    Some(FaultPlan { fault, ..plan })
}

fn offer_all(nodes: &mut [NodePlan], source_count: usize, random: &mut Random) {
    for source in 0..source_count {
        let offered = nodes.iter().any(|node| node.role != Role::Worker && node.offers.contains(&source));
        if !offered {
            let node = &mut nodes[random.below(nodes.len() as u64) as usize];
            if node.role == Role::Worker {
                node.role = Role::Auto;
            }
            node.offers.push(source);
            node.offers.sort_unstable();
            node.offers.dedup();
        }
    }
}
