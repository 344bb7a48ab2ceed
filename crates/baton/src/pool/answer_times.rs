//! Whether the answer of a child is waited for in the thread that asked for it.
//!
//! For a child that answers in some microseconds nothing is as quick: thread and child take turns on one core, as two ends
//! of a pipe do in a shell. Whoever waits otherwise is told by the runtime, by way of another thread, as a rule, and of a
//! core that has to be woken. What it costs others is bounded: only children whose last answer came soon are waited for,
//! no longer than [`MOST`], and at no time by more threads than the runtime has.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

/// The longest wait, and what counts as soon.
const MOST: Duration = Duration::from_micros(200);

/// Children of this process at work whose last answers came soon.
static QUICK: AtomicUsize = AtomicUsize::new(0);

/// What is known of a child.
#[derive(Debug, Default)]
pub(super) struct AnswerTimes {
    /// Whether its last answer came soon.
    is_quick: bool,
}

/// A wait for an answer.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    patience: &'a mut AnswerTimes,
    since: Instant,
    /// Others that are waited for in a thread, if this one may be too.
    others: Option<Quick>,
}

/// One of the quick ones at work.
#[derive(Debug)]
struct Quick(usize);

impl AnswerTimes {
    /// A child is given a task.
    pub(super) fn begin(&mut self) -> Wait<'_> {
        let others = self.is_quick.then(|| Quick(QUICK.fetch_add(1, Ordering::Relaxed)));
        Wait { patience: self, since: Instant::now(), others }
    }
}

impl Wait<'_> {
    /// Until when to wait in the thread, if at all. Of more children than threads any may be the first that answers.
    pub(super) fn in_thread(&self) -> Option<Instant> {
        let others = self.others.as_ref()?.0;
        (others < Handle::current().metrics().num_workers()).then(|| self.since + MOST)
    }

    /// It has answered.
    pub(super) fn ended(self) {
        self.patience.is_quick = self.since.elapsed() <= MOST;
    }
}

impl Drop for Quick {
    fn drop(&mut self) {
        QUICK.fetch_sub(1, Ordering::Relaxed);
    }
}
