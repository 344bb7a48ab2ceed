//! The memory of a child.

use std::fs;

/// Resident bytes of a process and its descendants; those that end meanwhile count nothing.
pub(super) fn resident(pid: u32) -> u64 {
    let (mut sum, mut left) = (0, vec![pid]);
    while let Some(pid) = left.pop() {
        sum += of_one(pid).unwrap_or(0);
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    sum
}

fn of_one(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
