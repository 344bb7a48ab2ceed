//! What a node counts and tells with its beats: messages run, how long they waited for it and how long they took.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::message::Name;

/// Waiting times by powers of two with four steps each, from 1 ms on.
const BUCKETS: usize = 120;
/// The most queues that a report tells apart: those that took most of the node's time. Beats are to be small.
const TOLD_APART: usize = 32;

/// The counts of one node since it joined; what its beats carry, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Messages run to an end, whatever it was.
    pub run: u64,
    /// Those that failed.
    pub failed: u64,
    /// How many waited how long from their push to the start of their handler, a count a bucket; without those that were
    /// retried, requeued or lost with a session before.
    pub waits: Vec<u64>,
    /// Its sources that have failed for good, and why: it leaves them alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_sources: BTreeMap<String, String>,
    /// What was run of a queue; at most 32 of them, those that took most time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handled: BTreeMap<String, Handled>,
    /// Whether it was ever given a message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// The cores of its machine, if it starts and retires worker processes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
}

/// What a node has run of one queue since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handled {
    /// Messages run to an end, whatever it was.
    pub run: u64,
    /// Those that failed.
    pub failed: u64,
    /// Microseconds that its handlers took, all together.
    pub us: u64,
}

impl Report {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket: usize| earlier.waits.get(bucket).copied().unwrap_or(0);
        let waits = self.waits.iter().enumerate().map(|(bucket, count)| count.saturating_sub(before(bucket))).collect();
        let (run, failed) = (self.run.saturating_sub(earlier.run), self.failed.saturating_sub(earlier.failed));
        let handled = self.handled.iter().map(|(queue, it)| {
            let before = earlier.handled.get(queue).copied().unwrap_or_default();
            (queue.clone(), it.since(before))
        });
        Self { run, failed, waits, handled: handled.collect(), ..self.clone() }
    }

    /// Both counts together.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.run += other.run;
        self.failed += other.failed;
        self.waits.resize(self.waits.len().max(other.waits.len()), 0);
        for (sum, count) in self.waits.iter_mut().zip(&other.waits) {
            *sum += count;
        }
        for (queue, it) in &other.handled {
            let sum = self.handled.entry(queue.clone()).or_default();
            *sum = Handled { run: sum.run + it.run, failed: sum.failed + it.failed, us: sum.us + it.us };
        }
        self
    }

    /// The waiting time in milliseconds that this share of the messages (0 to 1) did not exceed, if any were run.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.waits.iter().sum();
        let wanted = (all as f64 * share).ceil().max(1.0);
        let mut seen = 0;
        let found = self.waits.iter().position(|count| {
            seen += count;
            all > 0 && seen as f64 >= wanted
        });
        found.map(upper_end)
    }
}

impl Handled {
    /// What was counted since `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            run: self.run.saturating_sub(earlier.run),
            failed: self.failed.saturating_sub(earlier.failed),
            us: self.us.saturating_sub(earlier.us),
        }
    }
}

fn bucket_of(wait_ms: u64) -> usize {
    if wait_ms == 0 {
        return 0;
    }
    let steps = (wait_ms as f64).log2() * 4.0;
    (steps.floor() as usize + 1).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> f64 {
    if bucket == 0 { 1.0 } else { (bucket as f64 / 4.0).exp2() }
}

/// Counts as they grow.
#[derive(Debug)]
pub(super) struct Metrics {
    queues: Mutex<BTreeMap<Name, Arc<Tally>>>,
    waits: Mutex<[u64; BUCKETS]>,
    since: Instant,
    /// Store time in milliseconds less the time since then.
    offset: AtomicI64,
}

/// The counts of one queue.
#[derive(Debug, Default)]
pub(super) struct Tally {
    given: AtomicBool,
    run: AtomicU64,
    failed: AtomicU64,
    us: AtomicU64,
}

impl Tally {
    /// Messages are given to the handler.
    pub(super) fn given(&self) {
        if !self.given.load(Relaxed) {
            self.given.store(true, Relaxed);
        }
    }

    /// Messages were run.
    pub(super) fn ran(&self, count: u64, failed: u64) {
        self.run.fetch_add(count, Relaxed);
        self.failed.fetch_add(failed, Relaxed);
    }

    /// Handlers took so long, all together.
    pub(super) fn took(&self, time: Duration) {
        self.us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn handled(&self) -> Handled {
        Handled { run: self.run.load(Relaxed), failed: self.failed.load(Relaxed), us: self.us.load(Relaxed) }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            queues: Mutex::default(),
            waits: Mutex::new([0; BUCKETS]),
            since: Instant::now(),
            offset: AtomicI64::new(0),
        }
    }
}

impl Metrics {
    /// The counts of this queue, over all sessions of the node.
    pub(super) fn of(&self, queue: &Name) -> Arc<Tally> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(queue.clone()).or_default().clone()
    }

    /// Messages pushed at `born` are started now.
    pub(super) fn started(&self, count: u64, born: u64) {
        let now = self.passed_ms().saturating_add_signed(self.offset.load(Relaxed));
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = waits.get_mut(bucket_of(now.saturating_sub(born))) {
            *bucket += count;
        }
    }

    /// The store's time as a beat told it just now.
    pub(super) fn store_time(&self, now_ms: u64) {
        let offset = i64::try_from(now_ms).unwrap_or(0) - i64::try_from(self.passed_ms()).unwrap_or(0);
        self.offset.store(offset, Relaxed);
    }

    fn passed_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn report(&self) -> Report {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let used = waits.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let waits = waits.iter().take(used).copied().collect();
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let mut report = Report { waits, ..Report::default() };
        let mut handled = Vec::new();
        for (queue, tally) in queues.iter() {
            let it = tally.handled();
            report.given |= tally.given.load(Relaxed);
            (report.run, report.failed) = (report.run + it.run, report.failed + it.failed);
            if it.run > 0 {
                handled.push((queue.to_string(), it));
            }
        }
        handled.sort_by_key(|(_, it)| std::cmp::Reverse(it.us));
        handled.truncate(TOLD_APART);
        report.handled = handled.into_iter().collect();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_buckets() {
        let mut report = Report::default();
        assert_eq!(report.percentile(0.5), None);
        for wait in [0, 0, 0, 5, 100] {
            let bucket = bucket_of(wait);
            report.waits.resize(report.waits.len().max(bucket + 1), 0);
            report.waits[bucket] += 1;
        }
        assert_eq!(report.percentile(0.5), Some(1.0));
        assert!((100.0..=119.0).contains(&report.percentile(0.99).unwrap()));
        let twice = report.clone().and(&report);
        assert_eq!(twice.since(&report), report);
    }

    #[test]
    fn queues_are_told_apart_up_to_a_bound_and_all_are_counted() {
        let metrics = Metrics::default();
        assert!(!metrics.report().given);
        for number in 0..100_u64 {
            let tally = metrics.of(&Name::new(&format!("q{number}")).unwrap());
            tally.given();
            tally.ran(2, 1);
            tally.took(Duration::from_micros(number));
        }
        let report = metrics.report();
        assert_eq!((report.run, report.failed, report.given, report.handled.len()), (200, 100, true, TOLD_APART));
        assert_eq!(report.handled["q99"], Handled { run: 2, failed: 1, us: 99 });
        assert_eq!(report.clone().and(&report).since(&report), report);
        let told: Report = serde_json::from_slice(&serde_json::to_vec(&report).unwrap()).unwrap();
        assert_eq!(told, report);
    }
}
