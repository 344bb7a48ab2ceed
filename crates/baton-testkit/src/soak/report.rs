//! What a soak tells at its end, for people and as JSON.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{
    Settings,
    checker::Sum,
    faults::{Fault, Fired, required_generator_kills},
    findings::Findings,
    observer::Gap,
    storm::Stillness,
    usage::Usage,
};

/// The longest gaps a dead generator may leave, with a lease of one second.
const P95: Duration = Duration::from_millis(1_300);
const MAX: Duration = Duration::from_millis(2_000);

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Times {
    /// How many.
    pub count: usize,
    /// Half were shorter.
    pub p50_ms: u64,
    /// One in twenty was longer.
    pub p95_ms: u64,
    /// The longest.
    pub max_ms: u64,
}

impl Times {
    /// Sums times up.
    #[must_use]
    pub fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut millis: Vec<u64> = times.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).collect();
        millis.sort_unstable();
        let at = |percent: usize| millis.get((millis.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let [p50_ms, p95_ms, max_ms] = [50, 95, 100].map(|percent| at(percent).unwrap_or(0));
        Self { count: millis.len(), p50_ms, p95_ms, max_ms }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5} times, p50 {} ms, p95 {} ms, max {} ms", self.count, self.p50_ms, self.p95_ms, self.max_ms)
    }
}

/// How often a fault fired.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Count {
    /// Its name.
    pub fault: &'static str,
    /// How often.
    pub count: u64,
}

/// The result of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The store.
    pub store: &'static str,
    /// The seed.
    pub seed: u64,
    /// How long faults were thrown.
    pub seconds: u64,
    /// The nodes.
    pub nodes: usize,
    /// Faults and how often they fired; replays count when they were refused.
    pub fired: Vec<Count>,
    /// Messages finished under faults, before what was left was worked off.
    pub done_under_faults: u64,
    /// The same by the second.
    pub per_second: u64,
    /// Ids allotted.
    pub pushed: u64,
    /// Messages finished.
    pub done: u64,
    /// Messages among the errors.
    pub failed: u64,
    /// Those of them lost with too many sessions.
    pub dead_by_loss: u64,
    /// Executions beyond the first of a message.
    pub executed_again: u64,
    /// Positions whose push no journal tells of.
    pub untold: u64,
    /// Refused pushes, by the books.
    pub stale_pushes: u64,
    /// Messages in refused settles, by the books.
    pub stale_settles: u64,
    /// Batons seen.
    pub epochs: u64,
    /// How often the observer looked.
    pub looks: u64,
    /// From kill -9 of the generator to the next push.
    pub killed: Times,
    /// Those of them under the deep backlog.
    pub killed_deep: Times,
    /// From SIGSTOP of the generator to the next push.
    pub stopped: Times,
    /// From kill -9 of the server to the next push.
    pub restarted: Times,
    /// From the beginning of a stall to the next push.
    pub stalled: Times,
    /// What was used after a quarter of the time.
    pub quarter: Usage,
    /// What was used at the end.
    pub end: Usage,
    /// What must not be.
    pub findings: Vec<String>,
}

/// What a run is measured by.
pub(super) struct Measures<'a> {
    pub(super) still: &'a Stillness,
    pub(super) fired: &'a Fired,
    pub(super) findings: &'a Findings,
    pub(super) sum: Sum,
    /// The backlog that generators had to be killed under; 0 for none.
    pub(super) deep: u64,
    /// Messages a second that must be finished.
    pub(super) rate: u64,
    pub(super) server: bool,
}

impl Report {
    /// The report of a run that has not begun.
    pub(super) fn blank(settings: &Settings) -> Self {
        let none = Times::default();
        Self {
            store: settings.store.name(),
            seed: settings.seed,
            seconds: settings.seconds,
            nodes: settings.nodes,
            fired: Vec::new(),
            done_under_faults: 0,
            per_second: 0,
            pushed: 0,
            done: 0,
            failed: 0,
            dead_by_loss: 0,
            executed_again: 0,
            untold: 0,
            stale_pushes: 0,
            stale_settles: 0,
            epochs: 0,
            looks: 0,
            killed: none,
            killed_deep: none,
            stopped: none,
            restarted: none,
            stalled: none,
            quarter: Usage::default(),
            end: Usage::default(),
            findings: Vec::new(),
        }
    }

    /// Fills in what was measured, and finds what was demanded and did not come about.
    pub(super) fn judge(mut self, measures: &Measures<'_>) -> Self {
        let Measures { still, fired, findings, sum, deep, rate, server } = measures;
        for fault in Fault::of(*server) {
            let count = fired.count(fault);
            findings.demand(count > 0, || format!("{} never fired", fault.name()));
            self.fired.push(Count { fault: fault.name(), count });
        }
        let (kills, required) = (fired.count(Fault::KillGenerator), required_generator_kills(self.seconds));
        findings.demand(kills >= required, || format!("{kills} generators were killed, {required} are to be"));
        let pushes = |gaps: &[Gap]| Times::of(gaps.iter().map(|gap| gap.push));
        let is_deep = |gap: &&Gap| *deep > 0 && gap.backlog >= *deep;
        self.killed = pushes(&still.killed);
        self.killed_deep = Times::of(still.killed.iter().filter(is_deep).map(|gap| gap.push));
        self.stopped = pushes(&still.stopped);
        self.restarted = Times::of(still.restarted.iter().copied());
        self.stalled = Times::of(still.stalled.iter().copied());
        let slow = u128::from(self.killed.p95_ms) > P95.as_millis() || u128::from(self.killed.max_ms) > MAX.as_millis();
        findings.demand(!slow, || format!("a successor took too long: {}", self.killed));
        findings.demand(*deep == 0 || self.killed_deep.count > 0, || "no generator died under a deep backlog".into());
        self.per_second = self.done_under_faults / self.seconds.max(1);
        findings.demand(self.per_second >= *rate, || format!("{} messages/s, {rate} are due", self.per_second));
        let replayed = fired.count(Fault::ReplayBaton);
        findings.demand(sum.stale_pushes >= replayed, || {
            format!("{replayed} old batons were refused, the books know of {}", sum.stale_pushes)
        });
        let replayed = fired.count(Fault::ReplaySpent);
        findings.demand(sum.stale_settles >= replayed, || {
            format!("{replayed} spent tokens were refused, the books know of {}", sum.stale_settles)
        });
        self.pushed = sum.pushed;
        self.done = sum.done;
        self.failed = sum.failed;
        self.dead_by_loss = sum.dead_by_loss;
        self.executed_again = sum.executions.saturating_sub(sum.pushed);
        self.untold = sum.untold;
        self.stale_pushes = sum.stale_pushes;
        self.stale_settles = sum.stale_settles;
        self.findings = findings.all();
        self
    }

    /// Whether nothing was found.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "soak on {}: {} nodes, {} s, seed {}", self.store, self.nodes, self.seconds, self.seed)?;
        for Count { fault, count } in &self.fired {
            writeln!(f, "  {fault:<28}{count:>8}")?;
        }
        let rate = self.per_second;
        writeln!(f, "  {:<28}{:>8}  ({rate}/s)", "done under faults", self.done_under_faults)?;
        for (what, count) in [
            ("pushed", self.pushed),
            ("done", self.done),
            ("failed", self.failed),
            ("dead by loss", self.dead_by_loss),
            ("executed again", self.executed_again),
            ("batons", self.epochs),
            ("looks", self.looks),
            ("stale pushes", self.stale_pushes),
            ("stale settles", self.stale_settles),
            ("positions untold", self.untold),
        ] {
            writeln!(f, "  {what:<28}{count:>8}")?;
        }
        for (what, times) in [
            ("generator killed", self.killed),
            ("  under a deep backlog", self.killed_deep),
            ("generator stopped", self.stopped),
            ("server restarted", self.restarted),
            ("server stalled", self.stalled),
        ] {
            if times.count > 0 {
                writeln!(f, "  {what:<28}{times}")?;
            }
        }
        for (what, before, after) in [
            ("resident KiB of a node", self.quarter.resident_kib, self.end.resident_kib),
            ("open files of a node", self.quarter.files, self.end.files),
            ("KiB of the server", self.quarter.server_kib, self.end.server_kib),
        ] {
            writeln!(f, "  {what:<28}{before:>8}  after a quarter of the time, {after} at the end")?;
        }
        for finding in &self.findings {
            writeln!(f, "  FOUND {finding}")?;
        }
        write!(f, "{}", if self.passed() { "PASSED" } else { "FAILED" })
    }
}
