//! What a node counts and tells with its beats: messages run, and how long they waited for it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Waiting times by powers of two with four steps each, from 1 ms on.
const BUCKETS: usize = 120;

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
}

impl Report {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket: usize| earlier.waits.get(bucket).copied().unwrap_or(0);
        let waits = self.waits.iter().enumerate().map(|(bucket, count)| count.saturating_sub(before(bucket))).collect();
        let (run, failed) = (self.run.saturating_sub(earlier.run), self.failed.saturating_sub(earlier.failed));
        Self { run, failed, waits, failed_sources: self.failed_sources.clone() }
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
    run: AtomicU64,
    failed: AtomicU64,
    waits: Mutex<[u64; BUCKETS]>,
    since: Instant,
    /// Store time in milliseconds less the time since then.
    offset: AtomicI64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            run: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            waits: Mutex::new([0; BUCKETS]),
            since: Instant::now(),
            offset: AtomicI64::new(0),
        }
    }
}

impl Metrics {
    pub(super) fn ran(&self, count: u64, failed: u64) {
        self.run.fetch_add(count, Relaxed);
        self.failed.fetch_add(failed, Relaxed);
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
        let (run, failed) = (self.run.load(Relaxed), self.failed.load(Relaxed));
        Report { run, failed, waits, failed_sources: BTreeMap::new() }
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
}
