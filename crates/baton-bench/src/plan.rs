//! What is to be measured.

use clap::ValueEnum;

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// Bulk push from one process
    Push,
    /// One worker process with a handler that does nothing
    Process,
    /// Both at once
    Whole,
    /// Push, process and whole by bare commands (Redis); the others always include their bare counterpart
    Raw,
    /// 64 callers that push one message a call
    Singles,
    /// 16 processes that push one message a call, alone and with a worker
    Everyday,
    /// Messages pushed one a call whose handlers burn 1 ms of CPU, wait for 10 ms, or fail twice in one of ten cases
    Work,
    /// From a push to the start of its handler
    Latency,
    /// A worker with a thousand queues, all idle but one
    Queues,
    /// From the death of a generator to its successor's first push
    Failover,
    /// Handlers that burn CPU for 0.2 and 1 ms, compared with bare threads that do the same
    Cpu,
    /// Children that do nothing with their messages, one a core, compared with a bare loop over their pipes
    Exec,
    /// Bytes of a waiting message beyond its body
    Memory,
}

/// How it is to be measured.
#[derive(Debug)]
pub struct Plan {
    /// Messages a round.
    pub messages: u64,
    /// Rounds, of which medians are given.
    pub rounds: u32,
    /// Messages in a parcel.
    pub parcel: u32,
    /// Bytes of a body, two at least.
    pub bytes: usize,
    /// Messages that wait before anything is measured.
    pub backlog: u64,
    /// Whether a server of its own keeps an append-only file.
    pub aof: bool,
    /// Everything if empty.
    pub only: Vec<Measure>,
}

impl Plan {
    pub(crate) fn wants(&self, measure: Measure) -> bool {
        self.only.is_empty() || self.only.contains(&measure)
    }

    pub(crate) fn wants_any(&self, measures: &[Measure]) -> bool {
        measures.iter().any(|measure| self.wants(*measure))
    }
}
