//! What is to be measured.

use clap::ValueEnum;

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// Bulk push from one process
    Push,
    /// One worker process with a handler that does nothing
    Process,
    /// Both at once
    Whole,
    /// Push, process and whole by bare commands (Redis); the others always have theirs beside them
    Raw,
    /// 64 callers that push one message a call
    Singles,
    /// From a push to the start of its handler
    Latency,
    /// A worker with a thousand queues, all idle but one
    Queues,
    /// From the death of a generator to its successor's first push
    Failover,
    /// Handlers that burn CPU for 0.2 and 1 ms, beside bare threads that do the same
    Cpu,
    /// Bytes of a waiting message beyond its body
    Memory,
}

/// How it is to be measured.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) messages: u64,
    pub(crate) rounds: u32,
    pub(crate) parcel: u32,
    pub(crate) bytes: usize,
    pub(crate) backlog: u64,
    pub(crate) aof: bool,
    /// Everything if empty.
    pub(crate) only: Vec<Measure>,
}

impl Plan {
    pub(crate) fn wants(&self, measure: Measure) -> bool {
        self.only.is_empty() || self.only.contains(&measure)
    }

    pub(crate) fn wants_any(&self, measures: &[Measure]) -> bool {
        measures.iter().any(|measure| self.wants(*measure))
    }
}
