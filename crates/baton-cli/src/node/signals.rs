//! Who may ask a node to stop: signals, and the process that holds its leash.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use baton::{
    Shutdown,
    process::{resume_children, suspend_children},
};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

use super::Log;
use crate::{
    exit::Failure,
    interrupt::{INTERRUPTED, end_after},
    output::remark,
};

/// One wish may come twice: to the process, and to its group.
const SAME_WISH: Duration = Duration::from_millis(250);
/// How long, over the lease, whoever was told to stop at once may take, `up` with its workers included.
const OVERDUE: Duration = Duration::from_secs(5);

/// The first signal drains, the second stops at once and ends the process in time whatever stands in the way, the third
/// ends it now.
pub(crate) fn obey_signals(shutdown: &Shutdown, log: &Arc<Log>, lease: Duration) -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "run this again"))
    };
    let (interrupt, terminate, hangup) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    let [stop, go_on] = [Signal::TSTP, Signal::CONT].map(|it| listen(SignalKind::from_raw(it.as_raw())));
    tokio::spawn(pause_with_children(stop?, go_on?));
    tokio::spawn(stop_in_steps([interrupt, terminate, hangup], shutdown.clone(), log.clone(), lease));
    Ok(())
}

async fn stop_in_steps(
    [mut interrupt, mut terminate, mut hangup]: [Listener; 3], shutdown: Shutdown, log: Arc<Log>, lease: Duration,
) {
    let (mut step, mut last) = (0, None::<Instant>);
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        if last.is_some_and(|last| last.elapsed() < SAME_WISH) {
            continue;
        }
        last = Some(Instant::now());
        step += 1;
        match step {
            1 => {
                log.line("stopping: this node finishes what runs (Ctrl-C or SIGTERM again stops it at once)");
                shutdown.graceful();
            }
            2 => {
                log.line("stopping at once");
                shutdown.now();
                end_after(lease + OVERDUE);
            }
            _ => std::process::exit(INTERRUPTED),
        }
    }
}

/// Stops with all children where a terminal asks for it (Ctrl-Z), and goes on with them.
async fn pause_with_children(mut stop: Listener, mut go_on: Listener) {
    loop {
        tokio::select! {
            _ = stop.recv() => {
                suspend_children();
                // Its children go on by the signal that this process goes on by: this may return before it stands still.
                kill_process(getpid(), Signal::STOP).ok();
            }
            _ = go_on.recv() => resume_children(),
        }
    }
}

/// Obeys the process that holds this one by a leash.
pub(crate) fn obey_leash(shutdown: &Shutdown) {
    if baton::admin::obey_leash(shutdown).is_err() {
        remark("cannot start a thread that listens to the parent; free some threads");
    }
}
