//! The groups of all children of this process, so that they stop and go on with it.
//!
//! A terminal's Ctrl-Z reaches only the group in its foreground, and each child leads a group of its own.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A group, as long as this is held.
#[derive(Debug)]
pub(super) struct Group(u32);

impl Group {
    pub(super) fn new(pid: u32) -> Self {
        groups().insert(pid);
        Self(pid)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        groups().remove(&self.0);
    }
}

/// Asks all children to stop as Ctrl-Z does. One that is a node stops its own children first.
pub fn suspend_children() {
    signal_all(Signal::TSTP);
}

/// Has all children go on that were stopped.
pub fn resume_children() {
    signal_all(Signal::CONT);
}

fn signal_all(signal: Signal) {
    for group in groups().iter().filter_map(|pid| i32::try_from(*pid).ok().and_then(Pid::from_raw)) {
        // It fails only if nobody is left.
        kill_process_group(group, signal).ok();
    }
}

fn groups() -> MutexGuard<'static, BTreeSet<u32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}
