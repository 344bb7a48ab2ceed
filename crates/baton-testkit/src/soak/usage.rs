//! What a run uses: resident memory and open files of a node that is never struck down, and memory of the server.
//!
//! A process that loses a little with every message, session or outage has more at the end than after a quarter of the
//! time. The node is one that only works, so that no fault is aimed at it; the server is looked at when everything has
//! been worked off, since what waits is no loss.

use std::{fs, time::Duration};

use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::{findings::Findings, nodes::Nodes};

/// How much more there may be at the end.
const GROWTH: f64 = 1.2;

/// What is used at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Resident memory of the node in KiB.
    pub resident_kib: u64,
    /// Its open files.
    pub files: u64,
    /// Memory of the server in KiB; 0 without one.
    pub server_kib: u64,
}

/// Looks at a node's process until dropped.
pub struct Gauge {
    begin: Instant,
    looks: Vec<(Duration, Usage)>,
}

impl Gauge {
    /// Begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { begin: Instant::now(), looks: Vec::new() }
    }

    /// Looks at the node in this place, and at the server as `server_kib` tells, twice a second, for ever.
    pub async fn watch(&mut self, nodes: &Nodes, slot: usize, server_kib: impl AsyncFn() -> u64) {
        loop {
            if let Some((resident_kib, files)) = nodes.pid(slot).and_then(of_process) {
                let usage = Usage { resident_kib, files, server_kib: server_kib().await };
                self.looks.push((self.begin.elapsed(), usage));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// The median from `from` to `to` (0 to 1) of a run so long.
    #[must_use]
    pub fn between(&self, from: f64, to: f64, length: Duration) -> Usage {
        let within = |at: &Duration| *at >= length.mul_f64(from) && *at <= length.mul_f64(to);
        let looks: Vec<Usage> = self.looks.iter().filter(|(at, _)| within(at)).map(|(_, usage)| *usage).collect();
        let median = |of: fn(&Usage) -> u64| {
            let mut all: Vec<u64> = looks.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        };
        Usage {
            resident_kib: median(|usage| usage.resident_kib),
            files: median(|usage| usage.files),
            server_kib: median(|usage| usage.server_kib),
        }
    }
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new()
    }
}

/// Holds what was used at the end against a quarter of the time.
pub fn judge(quarter: Usage, end: Usage, findings: &Findings) {
    for (what, before, after) in [
        ("KiB of resident memory", quarter.resident_kib, end.resident_kib),
        ("open files", quarter.files, end.files),
        ("KiB of the server's memory", quarter.server_kib, end.server_kib),
    ] {
        findings.demand(after as f64 <= before as f64 * GROWTH, || {
            format!("a node or its server grows: {before} {what} after a quarter of the time, {after} at the end")
        });
    }
    findings.demand(quarter.resident_kib > 0, || "the node that is never struck down was not seen".to_owned());
}

/// Resident memory in KiB and open files of a process.
fn of_process(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let resident = resident.split_whitespace().next()?.parse().ok()?;
    Some((resident, fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_a_process_can_be_looked_at() {
        let (resident_kib, files) = of_process(std::process::id()).unwrap();
        assert!(resident_kib > 100 && files >= 3, "{resident_kib} KiB, {files} files");
        let usage = |resident_kib, files| Usage { resident_kib, files, server_kib: 0 };
        let (good, bad) = (Findings::default(), Findings::default());
        judge(usage(1_000, 10), usage(1_200, 12), &good);
        assert_eq!(good.all(), Vec::<String>::new());
        judge(usage(1_000, 10), usage(1_201, 13), &bad);
        assert_eq!(bad.all().len(), 2);
        let length = Duration::from_secs(100);
        let looks = (0..100).map(|at| (Duration::from_secs(at), usage(at, 1))).collect();
        let gauge = Gauge { begin: Instant::now(), looks };
        assert_eq!(gauge.between(0.2, 0.3, length).resident_kib, 25);
        assert_eq!(gauge.between(2.0, 3.0, length), Usage::default());
    }
}
