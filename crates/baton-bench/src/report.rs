//! The figures of one store, as JSON and as a table.

use baton::admin::wording::plural;
use serde::Serialize;

use super::plan::Plan;

/// What is measured by parcels.
pub(super) const BULK: &str = "bulk";
/// What stands where a figure was not measured.
const NOTHING: &str = "-";

/// All figures of one store; what was not measured is left out.
#[derive(Debug, Default, Serialize)]
pub struct Figures {
    /// Without its password.
    store: String,
    messages: u64,
    rounds: u32,
    parcel: u32,
    bytes: usize,
    backlog: u64,
    /// Whether others used the server too, which is then in its processor time and memory.
    pub(super) shared: bool,
    pub(super) push_per_s: Figure,
    pub(super) process_per_s: Figure,
    pub(super) whole_per_s: Figure,
    pub(super) raw_push_per_s: Figure,
    pub(super) raw_process_per_s: Figure,
    pub(super) raw_whole_per_s: Figure,
    push_ratio: Figure,
    process_ratio: Figure,
    whole_ratio: Figure,
    pub(super) push_cpu_us: Figure,
    pub(super) process_cpu_us: Figure,
    cpu_us: Figure,
    pub(super) singles_per_s: Figure,
    pub(super) raw_singles_per_s: Figure,
    singles_ratio: Figure,
    pub(super) redis_benchmark_lpush: Figure,
    singles_benchmark_ratio: Figure,
    pub(super) everyday_push_per_s: Figure,
    pub(super) raw_everyday_push_per_s: Figure,
    everyday_push_ratio: Figure,
    pub(super) everyday_push_cpu_us: Figure,
    pub(super) raw_everyday_push_cpu_us: Figure,
    everyday_push_cpu_ratio: Figure,
    pub(super) everyday_memory_bytes: Figure,
    pub(super) everyday_whole_per_s: Figure,
    pub(super) everyday_whole_cpu_us: Figure,
    pub(super) work_burn_per_s: Figure,
    pub(super) work_burn_cpu_us: Figure,
    pub(super) work_wait_per_s: Figure,
    pub(super) work_wait_cpu_us: Figure,
    pub(super) work_fail_per_s: Figure,
    pub(super) work_fail_cpu_us: Figure,
    pub(super) idle_p50_us: Figure,
    pub(super) idle_p99_us: Figure,
    pub(super) raw_idle_p50_us: Figure,
    pub(super) raw_idle_p99_us: Figure,
    idle_p50_ratio: Figure,
    idle_p99_ratio: Figure,
    pub(super) load_per_s: Figure,
    pub(super) load_p50_us: Figure,
    pub(super) load_p99_us: Figure,
    pub(super) queues_connections: Figure,
    pub(super) queues_requests_per_s: Figure,
    pub(super) queues_p50_us: Figure,
    pub(super) raw_queues_p50_us: Figure,
    queues_p50_ratio: Figure,
    pub(super) queues_cpu_us: Figure,
    pub(super) one_queue_cpu_us: Figure,
    queues_cpu_ratio: Figure,
    pub(super) failover_median_ms: Figure,
    pub(super) failover_max_ms: Figure,
    pub(super) burn_200us_per_s: Figure,
    pub(super) raw_burn_200us_per_s: Figure,
    burn_200us_ratio: Figure,
    pub(super) burn_1ms_per_s: Figure,
    pub(super) raw_burn_1ms_per_s: Figure,
    burn_1ms_ratio: Figure,
    pub(super) exec_per_s: Figure,
    pub(super) raw_exec_per_s: Figure,
    exec_ratio: Figure,
    pub(super) exec_wait_us: Figure,
    pub(super) memory_bulk_bytes: Figure,
    pub(super) memory_singles_bytes: Figure,
    /// Messages done in all, by the books and by a recount.
    pub(super) done: u64,
    /// What was measured by how many messages a round.
    #[serde(skip)]
    counts: Vec<(&'static str, u64)>,
}

/// A measured number, if it was measured.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Figure(pub(super) Option<f64>);

impl Serialize for Figure {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.map(|value| (value * 1000.0).round() / 1000.0).serialize(serializer)
    }
}

impl Figure {
    fn over(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(this, other)| this / other))
    }

    fn and(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(this, other)| this + other))
    }

    fn shown(self) -> String {
        self.0.map_or_else(
            || NOTHING.to_owned(),
            |value| match value.abs() {
                100.0.. => format!("{value:.0}"),
                10.0.. => format!("{value:.1}"),
                _ => format!("{value:.2}"),
            },
        )
    }
}

impl Figures {
    pub(super) fn new(store: String, plan: &Plan) -> Self {
        let Plan { messages, rounds, parcel, bytes, backlog, .. } = *plan;
        Self { store, messages, rounds, parcel, bytes, backlog, ..Self::default() }
    }

    /// Notes by how many messages a round something is measured.
    pub(super) fn counted(&mut self, what: &'static str, messages: u64) {
        self.counts.push((what, messages));
    }

    /// Works out what follows from the measured figures.
    pub(super) fn complete(mut self) -> Self {
        self.push_ratio = self.push_per_s.over(self.raw_push_per_s);
        self.process_ratio = self.process_per_s.over(self.raw_process_per_s);
        self.whole_ratio = self.whole_per_s.over(self.raw_whole_per_s);
        self.cpu_us = self.push_cpu_us.and(self.process_cpu_us);
        self.singles_ratio = self.singles_per_s.over(self.raw_singles_per_s);
        self.singles_benchmark_ratio = self.singles_per_s.over(self.redis_benchmark_lpush);
        self.everyday_push_ratio = self.everyday_push_per_s.over(self.raw_everyday_push_per_s);
        self.everyday_push_cpu_ratio = self.everyday_push_cpu_us.over(self.raw_everyday_push_cpu_us);
        self.burn_200us_ratio = self.burn_200us_per_s.over(self.raw_burn_200us_per_s);
        self.burn_1ms_ratio = self.burn_1ms_per_s.over(self.raw_burn_1ms_per_s);
        self.exec_ratio = self.exec_per_s.over(self.raw_exec_per_s);
        self.idle_p50_ratio = self.idle_p50_us.over(self.raw_idle_p50_us);
        self.idle_p99_ratio = self.idle_p99_us.over(self.raw_idle_p99_us);
        self.queues_p50_ratio = self.queues_p50_us.over(self.raw_queues_p50_us);
        self.queues_cpu_ratio = self.queues_cpu_us.over(self.one_queue_cpu_us);
        self
    }

    /// What was measured, in a line.
    #[must_use]
    pub fn title(&self) -> String {
        let Self { store, rounds, parcel, bytes, counts, .. } = self;
        let counts = counts.iter().map(|(what, messages)| match *what {
            BULK => format!("{messages} in bulk, in parcels of {parcel}"),
            what => format!("{messages} for {what}"),
        });
        let counts = counts.collect::<Vec<_>>().join("; ");
        if counts.is_empty() {
            return format!("{store}: messages of {bytes} bytes");
        }
        let s = plural(u64::from(*rounds));
        format!("{store}: messages of {bytes} bytes, medians of {rounds} round{s}, in each {counts}")
    }

    /// How to read the ratios, if there are some.
    #[must_use]
    pub fn reading(&self) -> Option<&'static str> {
        let compares = self.rows().iter().any(|row| row.get(3).is_some_and(|ratio| ratio != NOTHING));
        compares.then_some("ratios are baton to raw: of rates more is better, of times, CPU and bytes less")
    }

    /// Whether others used the server too, and are in its CPU and memory figures.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.shared
    }

    /// How many messages are done.
    #[must_use]
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// The figures for people: what, Baton's, the bare store's, the ratio, and the unit.
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<String>> {
        let none = Figure::default();
        let rows = [
            ("push", "messages/s", self.push_per_s, self.raw_push_per_s, self.push_ratio),
            ("process", "messages/s", self.process_per_s, self.raw_process_per_s, self.process_ratio),
            ("whole", "messages/s", self.whole_per_s, self.raw_whole_per_s, self.whole_ratio),
            ("store CPU, push", "µs/message", self.push_cpu_us, none, none),
            ("store CPU, process", "µs/message", self.process_cpu_us, none, none),
            ("store CPU", "µs/message", self.cpu_us, none, none),
            ("singles", "calls/s", self.singles_per_s, self.raw_singles_per_s, self.singles_ratio),
            (
                "singles to redis-benchmark",
                "calls/s",
                self.singles_per_s,
                self.redis_benchmark_lpush,
                self.singles_benchmark_ratio,
            ),
            (
                "16 processes push singly",
                "calls/s",
                self.everyday_push_per_s,
                self.raw_everyday_push_per_s,
                self.everyday_push_ratio,
            ),
            (
                "16 processes push singly, store CPU",
                "µs/message",
                self.everyday_push_cpu_us,
                self.raw_everyday_push_cpu_us,
                self.everyday_push_cpu_ratio,
            ),
            ("16 processes push, memory beyond the body", "bytes/message", self.everyday_memory_bytes, none, none),
            ("16 processes push, a worker processes", "messages/s", self.everyday_whole_per_s, none, none),
            ("16 processes push, a worker processes, store CPU", "µs/message", self.everyday_whole_cpu_us, none, none),
            ("messages of 1 ms CPU", "messages/s", self.work_burn_per_s, none, none),
            ("messages of 1 ms CPU, store CPU", "µs/message", self.work_burn_cpu_us, none, none),
            ("messages that wait for 10 ms, 256 at once", "messages/s", self.work_wait_per_s, none, none),
            ("messages that wait, store CPU", "µs/message", self.work_wait_cpu_us, none, none),
            ("messages of which one in ten fails twice", "messages/s", self.work_fail_per_s, none, none),
            ("messages of which one in ten fails, store CPU", "µs/message", self.work_fail_cpu_us, none, none),
            ("latency idle p50", "µs", self.idle_p50_us, self.raw_idle_p50_us, self.idle_p50_ratio),
            ("latency idle p99", "µs", self.idle_p99_us, self.raw_idle_p99_us, self.idle_p99_ratio),
            ("latency at load p50", "µs", self.load_p50_us, none, none),
            ("latency at load p99", "µs", self.load_p99_us, none, none),
            ("load", "messages/s", self.load_per_s, none, none),
            ("1,000 idle queues, connections", "", self.queues_connections, none, none),
            ("1,000 idle queues, requests", "requests/s", self.queues_requests_per_s, none, none),
            ("1,000 idle queues, p50", "µs", self.queues_p50_us, self.raw_queues_p50_us, self.queues_p50_ratio),
            (
                "1,000 queues to one, store CPU",
                "µs/message",
                self.queues_cpu_us,
                self.one_queue_cpu_us,
                self.queues_cpu_ratio,
            ),
            ("failover median", "ms", self.failover_median_ms, none, none),
            ("failover max", "ms", self.failover_max_ms, none, none),
            (
                "handlers of 0.2 ms CPU",
                "messages/s",
                self.burn_200us_per_s,
                self.raw_burn_200us_per_s,
                self.burn_200us_ratio,
            ),
            ("handlers of 1 ms CPU", "messages/s", self.burn_1ms_per_s, self.raw_burn_1ms_per_s, self.burn_1ms_ratio),
            ("messages run by children", "messages/s", self.exec_per_s, self.raw_exec_per_s, self.exec_ratio),
            ("a child waits for its next message, p50", "µs", self.exec_wait_us, none, none),
            ("memory beyond the body, bulk", "bytes/message", self.memory_bulk_bytes, none, none),
            ("memory beyond the body, singles", "bytes/message", self.memory_singles_bytes, none, none),
        ];
        // A row that compares is shown only with something to compare; one without figures not at all.
        let told = rows.into_iter().filter(|(what, _, baton, raw, _)| match *what {
            "singles to redis-benchmark" => raw.0.is_some(),
            _ => baton.0.is_some() || raw.0.is_some(),
        });
        let shown = |(what, unit, baton, raw, ratio): (&str, &str, Figure, Figure, Figure)| {
            vec![what.to_owned(), baton.shown(), raw.shown(), ratio.shown(), unit.to_owned()]
        };
        told.map(shown).collect()
    }
}
