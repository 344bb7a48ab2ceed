//! A fleet as it is drawn from a seed: which nodes, queues, sources and kinds of work, what is pushed from outside, and
//! which faults are thrown when. It is plain data, so a failing seed can show what it stands for.

use std::fmt;

use baton::Role;

use super::{chance::drawn, work::Work};
use crate::soak::random::Random;

/// Everything that follows from a seed before time begins to pass.
#[derive(Debug, Clone)]
pub struct Topology {
    /// What it was drawn from.
    pub seed: u64,
    /// How long faults are thrown and messages pushed, in simulated milliseconds.
    pub length_ms: u64,
    /// The nodes.
    pub nodes: Vec<NodePlan>,
    /// The queues.
    pub queues: Vec<QueuePlan>,
    /// The sources.
    pub sources: Vec<SourcePlan>,
    /// Messages from outside, in order of time.
    pub pushes: Vec<PushPlan>,
    /// Faults, in order of time.
    pub faults: Vec<FaultPlan>,
}

/// A node.
#[derive(Debug, Clone)]
pub struct NodePlan {
    /// Its role.
    pub role: Role,
    /// The queues it has handlers for, and how many of each run at once.
    pub works: Vec<(usize, usize)>,
    /// The sources it offers.
    pub offers: Vec<usize>,
    /// Its lease.
    pub lease_ms: u64,
    /// Its heartbeat.
    pub heartbeat_ms: u64,
    /// Bytes a queue may hold before its sources wait.
    pub max_queue_bytes: u64,
    /// When it starts.
    pub starts_ms: u64,
}

/// A queue.
#[derive(Debug, Clone)]
pub struct QueuePlan {
    /// Its name.
    pub name: String,
    /// What its handlers do.
    pub work: Work,
    /// Attempts after the first.
    pub retries: u32,
    /// The pause before the second.
    pub backoff_ms: u64,
}

/// A source.
#[derive(Debug, Clone)]
pub struct SourcePlan {
    /// Its name.
    pub name: String,
    /// The queue it feeds.
    pub queue: usize,
    /// The pause before each batch.
    pub every_ms: u64,
    /// Messages in a batch.
    pub batch: u64,
    /// Where it ends, if it does.
    pub end: Option<u64>,
    /// What goes wrong with it now and then.
    pub trouble: Trouble,
}

/// What goes wrong with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Opening fails.
    OpenFails,
    /// Pulling fails.
    PullFails,
    /// Opening panics.
    OpenPanics,
    /// Pulling panics.
    PullPanics,
}

/// Messages pushed at one moment.
#[derive(Debug, Clone, Copy)]
pub struct PushPlan {
    /// When.
    pub at_ms: u64,
    /// Where to.
    pub queue: usize,
    /// How many; one is pushed singly, more in bulk.
    pub count: u64,
}

/// A fault.
#[derive(Debug, Clone, Copy)]
pub struct FaultPlan {
    /// When.
    pub at_ms: u64,
    /// What.
    pub fault: SimFault,
}

/// What is done to the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are a node or queue, and times in milliseconds")]
pub enum SimFault {
    /// A node is gone from one moment to the next, and may come back.
    Kill { node: usize, back_after: Option<u64> },
    /// A node is asked to finish and leave, and may come back.
    Drain { node: usize, back_after: Option<u64> },
    /// A node's calls and beats are held; its handlers go on.
    Pause { node: usize, ms: u64 },
    /// Some of a node's calls, or of the replies to them, are lost.
    Lossy { node: usize, ms: u64, per_mille: u64 },
    /// Copies of a node's calls reach the store a second time, later.
    Late { node: usize, ms: u64, per_mille: u64, delay: u64 },
    /// The store answers nobody.
    Stall { ms: u64 },
    /// A queue is paused by a person, who may purge it before it goes on.
    HoldQueue { queue: usize, ms: u64 },
}

impl Topology {
    /// The fleet of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::part(seed, 1);
        let node_count = match random.below(10) {
            0..=2 => 1 + random.below(3),
            3..=7 => 3 + random.below(9),
            8 => 10 + random.below(16),
            _ => 20 + random.below(31),
        };
        let queue_count = match random.below(10) {
            0 => 1 + random.below(2),
            1..=6 => 2 + random.below(12),
            _ => 10 + random.below(31),
        };
        let source_count = match random.below(4) {
            0 => 0,
            1 | 2 => 1 + random.below(4),
            _ => 2 + random.below(9),
        };
        let length_ms = 60_000 + random.below(10_000);
        let queues: Vec<QueuePlan> = (0..queue_count).map(|nth| queue(seed, nth, queue_count, &mut random)).collect();
        let mut sources: Vec<SourcePlan> = (0..source_count).map(|nth| source(nth, queue_count, &mut random)).collect();
        let leases = if random.below(4) == 0 { &[500, 1_000, 3_000][..] } else { &[1_000][..] };
        let nodes: Vec<NodePlan> =
            (0..node_count).map(|nth| node(nth, queue_count, source_count, leases, &mut random)).collect();
        let mut pushes = pushes(queue_count, length_ms, &mut random);
        let mut faults = faults(node_count, queue_count, length_ms, &mut random);
        if seed.is_multiple_of(5) {
            faults.extend(late_starts(&nodes, length_ms, &mut Random::part(seed, 3)));
            faults.sort_by_key(|fault| fault.at_ms);
        }
        if seed % 8 == 4 {
            let (arrivals, troubles) = late_copies(&nodes, length_ms, &mut Random::part(seed, 5));
            pushes.extend(arrivals);
            pushes.sort_by_key(|push| push.at_ms);
            faults.extend(troubles);
            faults.sort_by_key(|fault| fault.at_ms);
        }
        if seed % 8 == 6 {
            keep_busy(&mut sources, &mut Random::part(seed, 4));
        }
        let mut fleet = Self { seed, length_ms, nodes, queues, sources, pushes, faults };
        if seed % 8 == 6 {
            fleet.add_busy_nodes(&mut Random::part(seed, 6));
        }
        fleet
    }
}

impl Topology {
    /// A large fleet that lives for long: something is pushed ten times a second, and something goes wrong every two.
    #[must_use]
    pub fn large(seed: u64, node_count: u64, length_ms: u64) -> Self {
        let mut random = Random::part(seed, 2);
        let (queue_count, source_count) = (40, 10);
        let mut faults: Vec<FaultPlan> = Vec::new();
        while (faults.len() as u64) < length_ms / 2_000 {
            faults.extend(self::faults(node_count, queue_count, length_ms, &mut random));
        }
        faults.sort_by_key(|fault| fault.at_ms);
        let moment = |nth: u64, random: &mut Random| {
            let count = if random.below(200) == 0 { 2 + random.below(400) } else { 1 };
            PushPlan { at_ms: nth * 100, queue: random.below(queue_count) as usize, count }
        };
        Self {
            seed,
            length_ms,
            nodes: (0..node_count).map(|nth| node(nth, queue_count, source_count, &[1_000], &mut random)).collect(),
            queues: (0..queue_count).map(|nth| queue(seed, nth, queue_count, &mut random)).collect(),
            sources: (0..source_count).map(|nth| source(nth, queue_count, &mut random)).collect(),
            pushes: (10..length_ms / 100).map(|nth| moment(nth, &mut random)).collect(),
            faults,
        }
    }
}

pub(super) fn queue(seed: u64, nth: u64, queue_count: u64, random: &mut Random) -> QueuePlan {
    let work = Work::draw(queue_count as usize, random);
    let (retries, backoff_ms) = ([0, 1, 3][random.below(3) as usize], 200 + drawn(seed, &[nth], 1_000));
    QueuePlan { name: format!("q{nth}"), work, retries, backoff_ms }
}

pub(super) fn source(nth: u64, queue_count: u64, random: &mut Random) -> SourcePlan {
    let (every_ms, batch, end) = match random.below(5) {
        // Steady, without an end.
        0 => (200 + random.below(1_800), 1 + random.below(8), None),
        // As fast as the store takes it, to an end.
        1 => (0, 20 + random.below(60), Some(200 + random.below(1_500))),
        // A few, to an end.
        2 => (100 + random.below(900), 1 + random.below(5), Some(10 + random.below(90))),
        // One in a while, as cron jobs are.
        3 => (10_000 + random.below(20_000), 1, None),
        // Never while the fleet lives.
        _ => (86_400_000, 1, None),
    };
    let trouble = match random.below(12) {
        0 => Trouble::OpenFails,
        1 => Trouble::PullFails,
        2 => Trouble::OpenPanics,
        3 => Trouble::PullPanics,
        _ => Trouble::None,
    };
    SourcePlan { name: format!("s{nth}"), queue: random.below(queue_count) as usize, every_ms, batch, end, trouble }
}

pub(super) fn node(nth: u64, queue_count: u64, source_count: u64, leases: &[u64], random: &mut Random) -> NodePlan {
    let offers: Vec<usize> = (0..source_count as usize).filter(|_| random.below(5) < 3).collect();
    let role = match random.below(10) {
        0 | 1 => Role::Worker,
        2 if nth > 0 && !offers.is_empty() => Role::Generator,
        _ => Role::Auto,
    };
    let most = queue_count.min(30);
    let count = if random.below(2) == 0 { most } else { 1 + random.below(most) };
    let mut all: Vec<usize> = (0..queue_count as usize).collect();
    random.shuffle(&mut all);
    let mut works: Vec<(usize, usize)> = all.into_iter().take(count as usize).map(|queue| (queue, 0)).collect();
    works.sort_unstable();
    for (_, concurrency) in &mut works {
        *concurrency = match random.below(4) {
            0 => 1,
            1 => 2 + random.below(7) as usize,
            2 => 64,
            _ => 1 + random.below(64) as usize,
        };
    }
    let lease_ms = *random.pick(leases).unwrap();
    let heartbeat_ms = if lease_ms >= 1_000 { 200 } else { lease_ms / 4 };
    let max_queue_bytes = if random.below(3) == 0 { 2_000 + random.below(30_000) } else { 64 << 20 };
    let starts_ms = if random.below(3) == 0 { random.below(20_000) } else { random.below(50) };
    NodePlan { role, works, offers, lease_ms, heartbeat_ms, max_queue_bytes, starts_ms }
}

pub(super) fn pushes(queue_count: u64, length_ms: u64, random: &mut Random) -> Vec<PushPlan> {
    // Some queues are left idle, as most are in a real fleet.
    let used: Vec<usize> = (0..queue_count as usize).filter(|_| random.below(3) > 0).collect();
    let mut pushes = Vec::new();
    for _ in 0..10 + random.below(60) {
        let Some(queue) = random.pick(&used).copied() else { break };
        let at_ms = random.below(length_ms);
        match random.below(12) {
            0 => pushes.push(PushPlan { at_ms, queue, count: 2 + random.below(600) }),
            1 | 2 => pushes.push(PushPlan { at_ms, queue, count: 2 + random.below(30) }),
            3 => {
                let gap = 1 + random.below(50);
                pushes.extend((0..20).map(|nth| PushPlan { at_ms: at_ms + nth * gap, queue, count: 1 }));
            }
            _ => pushes.push(PushPlan { at_ms, queue, count: 1 }),
        }
    }
    pushes.sort_by_key(|push| push.at_ms);
    pushes
}

pub(super) fn faults(node_count: u64, queue_count: u64, length_ms: u64, random: &mut Random) -> Vec<FaultPlan> {
    let count = 3 + random.below(10);
    let mut faults: Vec<FaultPlan> = Vec::new();
    for _ in 0..count {
        let at_ms = 2_000 + random.below(length_ms - 10_000);
        let node = random.below(node_count) as usize;
        let back_after = (random.below(4) > 0).then(|| random.below(5_000));
        let fault = match random.below(20) {
            0..=4 => SimFault::Kill { node, back_after },
            5 | 6 => SimFault::Drain { node, back_after },
            7..=9 => SimFault::Pause { node, ms: 50 + random.below(4_000) },
            10..=12 => SimFault::Lossy { node, ms: 200 + random.below(3_000), per_mille: 20 + random.below(400) },
            13..=16 => {
                let (ms, delay) = (500 + random.below(20_000), 1 + random.below(3_000));
                // Copies do most where the node itself falls behind them.
                for _ in 0..random.below(6) {
                    let fault = SimFault::Pause { node, ms: 200 + random.below(1_000) };
                    faults.push(FaultPlan { at_ms: at_ms + random.below(ms), fault });
                }
                SimFault::Late { node, ms, per_mille: 20 + random.below(400), delay }
            }
            17 | 18 => SimFault::Stall { ms: 50 + random.below(4_000) },
            _ => SimFault::HoldQueue { queue: random.below(queue_count) as usize, ms: 100 + random.below(5_000) },
        };
        faults.push(FaultPlan { at_ms, fault });
    }
    faults.retain(|fault| fault.at_ms < length_ms);
    faults.sort_by_key(|fault| fault.at_ms);
    faults
}

/// Sources that keep a push under way for ten seconds and more, so that their nodes may leave work to others.
fn keep_busy(sources: &mut [SourcePlan], random: &mut Random) {
    for source in sources {
        if random.below(2) == 0 {
            (source.every_ms, source.batch, source.end) = (2 + random.below(3), 1, Some(3_000 + random.below(2_000)));
        }
    }
}

/// Nodes that are held up as soon as they have started again, while copies of their first calls are still on their way.
fn late_starts(nodes: &[NodePlan], length_ms: u64, random: &mut Random) -> Vec<FaultPlan> {
    let mut faults = Vec::new();
    for _ in 0..1 + random.below(6) {
        let at_ms = 21_000 + random.below(length_ms - 30_000);
        let (node, back_after) = (random.below(nodes.len() as u64) as usize, 200 + random.below(1_500));
        let (starts_ms, ms) = (at_ms + back_after + 1, 500 + random.below(450));
        let fault = |at_ms, fault| FaultPlan { at_ms, fault };
        faults.extend([
            fault(at_ms, SimFault::Kill { node, back_after: Some(back_after) }),
            fault(starts_ms, SimFault::Late { node, ms, per_mille: 900, delay: ms }),
            fault(starts_ms + 10 + random.below(40), SimFault::Pause { node, ms }),
        ]);
    }
    faults
}

/// Nodes that are held up when they have worked off their queues with several claims at once, while messages arrive and
/// copies of the claims that found nothing are still on their way.
fn late_copies(nodes: &[NodePlan], length_ms: u64, random: &mut Random) -> (Vec<PushPlan>, Vec<FaultPlan>) {
    let (mut pushes, mut faults) = (Vec::new(), Vec::new());
    for _ in 0..2 + random.below(6) {
        let at_ms = 21_000 + random.below(length_ms - 30_000);
        let node = random.below(nodes.len() as u64) as usize;
        let (late, pause) =
            (SimFault::Late { node, ms: 1_900, per_mille: 900, delay: 900 }, SimFault::Pause { node, ms: 850 });
        faults.extend([(0, late), (700, pause)].map(|(after, fault)| FaultPlan { at_ms: at_ms + after, fault }));
        for &(queue, _) in nodes[node].works.iter().take(6) {
            let push = |after, count| PushPlan { at_ms: at_ms + after, queue, count };
            pushes.push(push(500 + random.below(150), 100 + random.below(300)));
            pushes.extend((0..4).map(|_| push(750 + random.below(700), 1)));
        }
    }
    (pushes, faults)
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, node) in self.nodes.iter().enumerate() {
            let works: Vec<String> = node.works.iter().map(|(queue, at_once)| format!("q{queue}×{at_once}")).collect();
            let offers: Vec<String> = node.offers.iter().map(|source| format!("s{source}")).collect();
            let NodePlan { role, lease_ms, heartbeat_ms, max_queue_bytes, starts_ms, .. } = node;
            writeln!(
                f,
                "  node {nth}: {role:?} from {starts_ms} ms, lease {lease_ms}/{heartbeat_ms} ms, backlog {max_queue_bytes}, \
                 works [{}], offers [{}]",
                works.join(" "),
                offers.join(" ")
            )?;
        }
        for queue in &self.queues {
            writeln!(f, "  queue {}: {:?}, {} retries", queue.name, queue.work, queue.retries)?;
        }
        for SourcePlan { name, queue, every_ms, batch, end, trouble } in &self.sources {
            let end = end.map_or_else(|| "no end".to_owned(), |end| format!("ends at {end}"));
            writeln!(f, "  source {name} into q{queue}: {batch} every {every_ms} ms, {end}, trouble {trouble:?}")?;
        }
        for FaultPlan { at_ms, fault } in &self.faults {
            writeln!(f, "  fault at {at_ms} ms: {fault:?}")?;
        }
        let messages: u64 = self.pushes.iter().map(|push| push.count).sum();
        writeln!(f, "  {messages} messages pushed from outside at {} moments", self.pushes.len())
    }
}
