//! Whether the answer of a child is waited for in the thread that asked for it.
//!
//! This is the quickest way for a child that answers in some microseconds: thread and child take turns on one core, like
//! both ends of a pipe in a shell. Otherwise the runtime wakes the caller, usually by another thread and an idle core.
//! The cost for others is bounded: only children whose last answer came soon are waited for, no longer than [`MOST`], and
//! never by more threads than the runtime has.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

/// The longest wait; an answer within it counts as quick.
const MOST: Duration = Duration::from_micros(200);

/// Quick children of this process that are at work.
static QUICK: AtomicUsize = AtomicUsize::new(0);

/// The speed of a child so far.
#[derive(Debug, Default)]
pub(super) struct AnswerTimes {
    /// Whether its last answer was quick.
    is_quick: bool,
}

/// A wait for an answer.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    patience: &'a mut AnswerTimes,
    since: Instant,
    /// The quick children before this one, if this one is quick too.
    others: Option<Quick>,
}

/// A quick child at work.
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
    /// Until when to wait in the thread, if at all. With more children than threads, any of them may answer first.
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
