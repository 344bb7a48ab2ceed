//! Which faults are thrown, how often, in what order, and which of them have fired.
//!
//! Faults are dealt from a deck a round: every kind is in every round, so that a run that gets through one round has
//! met all of them, and the order within a round is random by the seed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use super::random::Random;

/// What can happen to a fleet in the soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// kill -9 of the node that holds the baton.
    KillGenerator,
    /// kill -9 of another node.
    KillWorker,
    /// SIGSTOP of the holder past its lease, then SIGCONT.
    StopGenerator,
    /// SIGSTOP of another node past its lease, then SIGCONT.
    StopWorker,
    /// CLIENT KILL of every connection.
    ClientKill,
    /// FUNCTION FLUSH.
    FunctionFlush,
    /// DEBUG SLEEP: a server that stalls.
    DebugSleep,
    /// kill -9 of the server and a restart from its log.
    KillServer,
    /// The user of half of the nodes lacks a right for a while.
    TakeRight,
    /// A reply thrown away by the proxy.
    LoseReply,
    /// A settle with the token of a session that is over.
    ReplayToken,
    /// A settle with a spent token of a live session.
    ReplaySpent,
    /// A push with a baton that has passed on.
    ReplayBaton,
}

impl Fault {
    const ALL: [Self; 13] = [
        Self::KillGenerator,
        Self::KillWorker,
        Self::StopGenerator,
        Self::StopWorker,
        Self::ClientKill,
        Self::FunctionFlush,
        Self::DebugSleep,
        Self::KillServer,
        Self::TakeRight,
        Self::LoseReply,
        Self::ReplayToken,
        Self::ReplaySpent,
        Self::ReplayBaton,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KillGenerator => "kill -9 of the generator",
            Self::KillWorker => "kill -9 of a worker",
            Self::StopGenerator => "SIGSTOP of the generator",
            Self::StopWorker => "SIGSTOP of a worker",
            Self::ClientKill => "CLIENT KILL",
            Self::FunctionFlush => "FUNCTION FLUSH",
            Self::DebugSleep => "DEBUG SLEEP",
            Self::KillServer => "kill -9 of the server",
            Self::TakeRight => "right taken away",
            Self::LoseReply => "lost reply",
            Self::ReplayToken => "token of a dead session",
            Self::ReplaySpent => "spent token",
            Self::ReplayBaton => "old baton",
        }
    }

    /// Whether it needs a server between the nodes.
    const fn needs_server(self) -> bool {
        matches!(
            self,
            Self::ClientKill
                | Self::FunctionFlush
                | Self::DebugSleep
                | Self::KillServer
                | Self::TakeRight
                | Self::LoseReply
        )
    }

    /// How often it is in a round of the deck; the replayer throws the replays at its own pace.
    const fn weight(self) -> u64 {
        match self {
            Self::KillGenerator => 13,
            Self::KillWorker => 4,
            Self::StopGenerator | Self::DebugSleep | Self::KillServer => 1,
            Self::StopWorker | Self::ClientKill | Self::FunctionFlush | Self::TakeRight => 2,
            Self::LoseReply => 8,
            Self::ReplayToken | Self::ReplaySpent | Self::ReplayBaton => 0,
        }
    }

    /// The faults a store can meet.
    #[must_use]
    pub fn of(server: bool) -> Vec<Self> {
        Self::ALL.into_iter().filter(|fault| server || !fault.needs_server()).collect()
    }
}

/// Seconds a full round of the deck takes: so that two minutes have four of them and time left for a deep backlog.
pub const ROUND_SECONDS: u64 = 26;

/// How many generators have to be killed in a run of so many seconds: 50 in two minutes.
#[must_use]
pub fn required_generator_kills(seconds: u64) -> u64 {
    (50 * seconds / 120).clamp(1, 50)
}

/// The faults of a run, one after the other, without end.
#[derive(Debug)]
pub struct Deck {
    random: Random,
    faults: Vec<Fault>,
    /// Generators killed in a round: fewer in a run that is shorter than one.
    generators: u64,
    round: Vec<Fault>,
}

impl Deck {
    /// The deck of a run.
    #[must_use]
    pub fn new(random: Random, server: bool, seconds: u64) -> Self {
        let full = Fault::KillGenerator.weight();
        let generators = (full * seconds.min(ROUND_SECONDS)).div_ceil(ROUND_SECONDS);
        Self { random, faults: Fault::of(server), generators, round: Vec::new() }
    }

    /// How many faults a round has.
    #[must_use]
    pub fn round_len(&self) -> u64 {
        self.faults.iter().map(|fault| self.copies(*fault)).sum()
    }

    /// The next fault.
    pub fn deal(&mut self) -> Fault {
        if self.round.is_empty() {
            for fault in self.faults.clone() {
                let copies = self.copies(fault);
                self.round.extend((0..copies).map(|_| fault));
            }
            self.random.shuffle(&mut self.round);
        }
        self.round.pop().unwrap_or(Fault::KillGenerator)
    }

    const fn copies(&self, fault: Fault) -> u64 {
        match fault {
            Fault::KillGenerator => self.generators,
            _ => fault.weight(),
        }
    }
}

/// How often each fault has fired; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Fired(Arc<Mutex<BTreeMap<Fault, u64>>>);

impl Fired {
    /// Counts a fault that took effect.
    pub fn note(&self, fault: Fault) {
        *self.0.lock().expect("no panic while counting").entry(fault).or_default() += 1;
    }

    /// Counts a fault that somebody else counted as it took effect.
    pub fn note_many(&self, fault: Fault, count: u64) {
        *self.0.lock().expect("no panic while counting").entry(fault).or_default() += count;
    }

    /// How often it fired.
    #[must_use]
    pub fn count(&self, fault: Fault) -> u64 {
        self.0.lock().expect("no panic while counting").get(&fault).copied().unwrap_or(0)
    }

    /// All faults together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.lock().expect("no panic while counting").values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_every_fault_and_a_seed_gives_it_again() {
        for (server, seconds) in [(true, 120), (true, 10), (false, 120), (false, 20)] {
            let deal = || {
                let mut deck = Deck::new(Random::new(7), server, seconds);
                (0..deck.round_len()).map(|_| deck.deal()).collect::<Vec<_>>()
            };
            let round = deal();
            assert_eq!(round, deal());
            for fault in Fault::of(server).into_iter().filter(|fault| fault.weight() > 0) {
                assert!(round.contains(&fault), "{fault:?}");
            }
            assert!(server || !round.contains(&Fault::KillServer));
            let kills = round.iter().filter(|fault| **fault == Fault::KillGenerator).count() as u64;
            assert!(kills * seconds.div_ceil(ROUND_SECONDS) >= required_generator_kills(seconds), "{kills}");
        }
    }
}
