//! Which process holds the store's lock, from what the kernel tells of all locks.
//!
//! Where it tells nothing, nobody is named.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    location::{real_path, sidecar},
    note::FileId,
};

/// The byte of SQLite's shared memory that is locked by whoever writes.
const WRITE_LOCK: u64 = 120;
/// Those that are locked by whoever reads.
const READ_LOCKS: (u64, u64) = (123, 127);

/// The process that keeps others from writing to the store at `path`, for people.
pub(super) fn of(path: &Path) -> Option<String> {
    let path = real_path(path);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let turn = inode(&sidecar(&path, "-lock"));
    let memory = inode(&sidecar(&path, "-shm"));
    // Whoever has the turn may itself be waiting for one that knows nothing of turns.
    let pid = memory
        .and_then(|inode| holder(&locks, "POSIX", inode, Some(WRITE_LOCK)))
        .or_else(|| turn.and_then(|inode| holder(&locks, "FLOCK", inode, None)))?;
    Some(shown(pid))
}

/// The processes that have the store at `path` open, for people.
pub(super) fn inside(path: &Path) -> Option<String> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let door = inode(&sidecar(path, "-door"))?;
    let pids: BTreeSet<u32> = entries(&locks, "FLOCK", door).map(|(pid, ..)| pid).collect();
    let names: Vec<String> = pids.into_iter().map(shown).collect();
    Some(names.join(", ")).filter(|names| !names.is_empty())
}

/// A process that holds the file at `path` itself, for people, and by which name.
pub(super) fn with_file(path: &Path) -> Option<(String, Option<PathBuf>)> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = entries(&locks, "FLOCK", inode(path)?).map(|(pid, ..)| pid).find(|pid| *pid > 0)?;
    let handles = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let same = |handle: &Path| FileId::of(handle).is_some_and(|id| FileId::of(path) == Some(id));
    let name = handles.map(|handle| handle.path()).find(|handle| same(handle));
    Some((shown(pid), name.and_then(|handle| std::fs::read_link(handle).ok())))
}

/// The processes that read the store at `path` at this moment.
pub(super) fn readers(path: &Path) -> BTreeSet<u32> {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    inode(&sidecar(path, "-shm")).map(|memory| reading(&locks, memory)).unwrap_or_default()
}

fn reading(locks: &str, memory: u64) -> BTreeSet<u32> {
    let reads = |from: &str, to: &str| {
        let (first, last) = READ_LOCKS;
        from.parse::<u64>().is_ok_and(|from| from <= last)
            && (to == "EOF" || to.parse::<u64>().is_ok_and(|to| to >= first))
    };
    let found = entries(locks, "POSIX", memory).filter(|(_, access, from, to)| *access == "READ" && reads(from, to));
    // A process that cannot be seen from here has the number 0.
    found.map(|it| it.0).filter(|pid| *pid > 0).collect()
}

/// These processes for people; this one only if it is alone, since it reads now and then.
pub(super) fn named(pids: &BTreeSet<u32>) -> Option<String> {
    let own = std::process::id();
    let others: Vec<String> = pids.iter().copied().filter(|pid| *pid != own).map(shown).collect();
    match others.is_empty() {
        true if pids.contains(&own) => Some("this process itself".to_owned()),
        true => None,
        false => Some(others.join(", ")),
    }
}

/// A process for people to find.
fn shown(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stopped = state.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']));
    let state = if stopped { ", stopped" } else { "" };
    if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({name}{state})") }
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|found| found.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

/// The process with a lock to write of this kind on the file, over this byte if one is named.
fn holder(locks: &str, kind: &str, inode: u64, byte: Option<u64>) -> Option<u32> {
    let covers = |from: &str, to: &str| {
        byte.is_none_or(|byte| {
            from.parse::<u64>().is_ok_and(|from| from <= byte)
                && (to == "EOF" || to.parse::<u64>().is_ok_and(|to| to >= byte))
        })
    };
    entries(locks, kind, inode).find(|(_, access, from, to)| *access == "WRITE" && covers(from, to)).map(|it| it.0)
}

/// Process, access and range of the locks of this kind on a file. Lines look like
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; those of processes that only wait have an arrow.
fn entries<'a>(
    locks: &'a str, kind: &'a str, inode: u64,
) -> impl Iterator<Item = (u32, &'a str, &'a str, &'a str)> + 'a {
    locks.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, found, _, access, pid, place, from, to] = fields.as_slice() else { return None };
        let same = *found == kind && place.rsplit(':').next()?.parse::<u64>().ok()? == inode;
        let pid = pid.parse().ok()?;
        same.then_some((pid, *access, *from, *to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_named_and_not_one_who_waits() {
        let locks = "\
1: FLOCK  ADVISORY  WRITE 11 fe:00:77 0 EOF
1: -> FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 13 fe:00:78 123 123
3: POSIX  ADVISORY  WRITE 14 fe:00:78 120 120
4: FLOCK  ADVISORY  READ 15 fe:00:79 0 EOF";
        assert_eq!(holder(locks, "FLOCK", 77, None), Some(11));
        assert_eq!(holder(locks, "POSIX", 78, Some(120)), Some(14));
        assert_eq!(holder(locks, "POSIX", 78, Some(121)), None);
        assert_eq!(holder(locks, "FLOCK", 79, None), None);
    }

    #[test]
    fn readers_are_those_with_a_lock_on_a_place_in_the_log() {
        let locks = "\
1: POSIX  ADVISORY  READ 11 fe:00:78 128 128
2: POSIX  ADVISORY  READ 12 fe:00:78 124 124
3: POSIX  ADVISORY  READ 13 fe:00:78 127 128
4: POSIX  ADVISORY  WRITE 14 fe:00:78 120 120
5: POSIX  ADVISORY  READ 0 fe:00:78 125 125
6: POSIX  ADVISORY  READ 15 fe:00:79 124 124";
        assert_eq!(reading(locks, 78), BTreeSet::from([12, 13]));
    }
}
