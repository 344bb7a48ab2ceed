//! This program as a guardian.

use std::{env, fs, io, process, thread, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use super::start;

/// How often it looks for marked processes at most, and the pause between two looks.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// Makes this program the guardian of its own children. Call it first in `main`: where the program was started as a guardian, it
/// does that work and does not return.
///
/// Programs that run children ([`Pool`](crate::pool::Pool), [`Exec`](crate::builtin::Exec), lines of a command) need a guardian, which ends the
/// children if the program is killed. Without this call a shell does it, and `sh` and `grep` must be installed.
///
/// ```no_run
/// baton::pool::guard_children();
/// ```
pub fn guard_children() {
    let is_guardian = env::args_os().next().is_some_and(|name| name == start::NAME);
    match env::var_os(start::ORDER).filter(|_| is_guardian) {
        Some(mark) => serve(mark.as_encoded_bytes()),
        None => start::is_own(),
    }
}

fn serve(mark: &[u8]) -> ! {
    // Without a name or with open ears it is a guardian all the same.
    fs::write("/proc/self/comm", start::NAME).ok();
    let _ears = deaf().ok();
    // An input that cannot be read has ended too.
    io::copy(&mut io::stdin(), &mut io::sink()).ok();
    for group in groups() {
        // It fails only if none of its processes is left.
        kill_process_group(group, Signal::KILL).ok();
    }
    // A process that was just starting another may have left that.
    for _ in 0..LOOKS {
        if !kill_marked(mark) {
            break;
        }
        thread::sleep(PAUSE);
    }
    process::exit(0)
}

/// Catches the signals that are sent to many processes at once, as long as the value is held.
fn deaf() -> io::Result<impl Sized> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()] {
        // It stays caught when its stream is dropped.
        drop(signal(kind)?);
    }
    drop(entered);
    Ok(runtime)
}

/// The groups in the list, which is the error output.
fn groups() -> Vec<Pid> {
    let (mut list, mut part) = (Vec::new(), [0; 4 << 10]);
    while let Ok(read @ 1..) = rustix::io::pread(io::stderr(), &mut part, list.len() as u64) {
        list.extend_from_slice(part.get(..read).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&list);
    text.split_whitespace().filter_map(|group| group.parse().ok().and_then(Pid::from_raw)).collect()
}

/// Kills all processes that have the mark in their environment; whether there was one.
fn kill_marked(mark: &[u8]) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|it| it.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter(|pid| kill_if_marked(*pid, mark)).count() > 0
}

fn kill_if_marked(pid: Pid, mark: &[u8]) -> bool {
    // The handle comes first: the number may be another process's by the time the environment was read.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark) && pidfd_send_signal(process, Signal::KILL).is_ok()
}
