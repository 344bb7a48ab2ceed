//! What a simulated fleet came to: a summary if all went well, and what a person needs if not.

use std::fmt;

use super::{journal::Journal, known::Broken, topology::Topology, world::World};

/// A fleet that kept all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Nodes.
    pub nodes: usize,
    /// Queues.
    pub queues: usize,
    /// Sources.
    pub sources: usize,
    /// Faults.
    pub faults: usize,
    /// Messages.
    pub messages: u64,
    /// Simulated milliseconds.
    pub simulated_ms: u64,
    /// Differs between two runs that differ anywhere.
    pub story: u64,
}

impl Summary {
    pub(super) fn of(world: &World) -> Self {
        let scene = world.scene.lock().unwrap();
        Self {
            nodes: world.topology.nodes.len(),
            queues: world.topology.queues.len(),
            sources: world.topology.sources.len(),
            faults: world.topology.faults.len(),
            messages: scene.ledgers.iter().map(super::ledger::QueueLedger::pushed).sum(),
            simulated_ms: scene.now(),
            story: scene.journal.sum(),
        }
    }
}

/// A fleet that broke a rule.
#[derive(Debug, Clone)]
pub struct Failed {
    /// The seed that shows it again.
    pub seed: u64,
    /// The rule, and what broke it.
    pub rule: String,
    /// Everything a person needs.
    pub text: String,
}

impl Failed {
    pub(super) fn new(topology: &Topology, broken: &Broken, journal: &Journal) -> Self {
        let Broken { at_ms, rule, about } = broken;
        let seed = topology.seed;
        let text = format!(
            "seed {seed} broke a rule at {at_ms} ms:\n  {rule}\nthe fleet:\n{topology}{}",
            journal.tell(*about)
        );
        Self { seed, rule: rule.clone(), text }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How the fleets of many seeds were distributed.
#[must_use]
pub fn distribution(summaries: &[Summary]) -> String {
    let line = |name: &str, of: fn(&Summary) -> u64| {
        let mut all: Vec<u64> = summaries.iter().map(of).collect();
        all.sort_unstable();
        let at = |share: usize| all.get((all.len().saturating_sub(1)) * share / 100).copied().unwrap_or(0);
        format!("  {name:<18} least {:>6}  median {:>6}  90 % {:>6}  most {:>6}\n", at(0), at(50), at(90), at(100))
    };
    format!("{} fleets\n", summaries.len())
        + &line("nodes", |it| it.nodes as u64)
        + &line("queues", |it| it.queues as u64)
        + &line("sources", |it| it.sources as u64)
        + &line("faults", |it| it.faults as u64)
        + &line("messages", |it| it.messages)
        + &line("simulated seconds", |it| it.simulated_ms / 1_000)
}
