//! Computations under way in this process, and those who wait for them.
//!
//! * A computation is a task of its own: whoever began it may leave. It is cancelled when the last who waits is gone, and nobody
//!   joins it from then on: joining, leaving and looking happen under one lock. Nothing else does: a task is started, and what
//!   has left is dropped, without it, since a runtime that shuts down drops a new task in place.
//! * A computation whose task ends without an outcome, or was never run, is not joined any more, and who waits is told.
//! * A reader joins only a computation whose value would be valid for it; else it begins another in its place.
//! * An error stays for a moment and answers all who come; a value is in the cache before its computation is gone. A reader who
//!   finds no computation looks into the cache once more under the same lock, so it begins none for a value that has just landed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{task::AbortHandle, time::Instant};

use super::{CacheError, Mode, Source, local::Entry};
use crate::{message::CacheKey, store::notice::Notice};

/// What a computation brought.
#[derive(Debug, Clone)]
pub(super) struct Landed {
    pub(super) entry: Entry,
    pub(super) from: From,
}

/// Where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The store had it.
    Store,
    /// It was computed, and perhaps is kept.
    Computation { stored: bool },
}

impl Landed {
    /// Where the value came from, as one sees it who began the computation or joined it.
    pub(super) const fn source(&self, joined: bool) -> Source {
        match self.from {
            From::Store => Source::Hit { local: false },
            From::Computation { stored } if joined => Source::Collapsed { stored },
            From::Computation { stored } => Source::Computed { stored },
        }
    }
}

pub(super) type Outcome = Result<Landed, CacheError>;

/// One computation.
#[derive(Debug)]
pub(super) struct Computation {
    /// Its value will be valid at this generation at least.
    generation: AtomicU64,
    /// When that was so.
    as_of: Mutex<Instant>,
    outcome: Notice<Option<Outcome>>,
    task: OnceLock<AbortHandle>,
    /// Those who wait; changed under the lock of all computations.
    waiters: AtomicUsize,
}

impl Computation {
    /// Its value will be valid at this generation, which was the store's no earlier than at this moment.
    pub(super) fn asks_at(&self, generation: u64, at: Instant) {
        self.generation.fetch_max(generation, Ordering::AcqRel);
        *self.as_of.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn as_of(&self) -> Instant {
        *self.as_of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which computations are shared: those that are kept, and those that are not, apart.
pub(super) type Line = (CacheKey, Mode);

/// The computations of this process.
#[derive(Debug, Default)]
pub(super) struct Computations(Mutex<HashMap<Line, Arc<Computation>>>);

impl Computations {
    fn aloft(&self) -> MutexGuard<'_, HashMap<Line, Arc<Computation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the computation of a line if it may be joined; gives what is `kept` if a computation has landed meanwhile. Else begins
    /// one, which displaces it and whose task `start` spawns; a computation that is displaced goes on for those who wait for it.
    /// If `start` panics there is no computation.
    pub(super) fn board<T>(
        self: &Arc<Self>, line: Line, generation: u64, joinable: impl FnOnce(&Computation) -> bool,
        kept: impl FnOnce() -> Option<T>, start: impl FnOnce(Landing) -> AbortHandle,
    ) -> Boarded<T> {
        let mut aloft = self.aloft();
        if let Some(computation) = aloft.get(&line).filter(|computation| joinable(computation)) {
            computation.waiters.fetch_add(1, Ordering::Relaxed);
            let computation = computation.clone();
            drop(aloft);
            return Boarded::Waits(Waiter { computations: self.clone(), line, computation, joined: true });
        }
        // A value is kept before its computation leaves the map, so under this lock one of the two is seen.
        if let Some(kept) = kept() {
            return Boarded::Kept(kept);
        }
        let computation = Arc::new(Computation {
            generation: AtomicU64::new(generation),
            as_of: Mutex::new(Instant::now()),
            outcome: Notice::default(),
            task: OnceLock::new(),
            waiters: AtomicUsize::new(1),
        });
        let displaced = aloft.insert(line.clone(), computation.clone());
        drop(aloft);
        drop(displaced);
        // While it waits nobody else is the last who leaves, so whoever is finds the task.
        let waiter =
            Waiter { computations: self.clone(), line: line.clone(), computation: computation.clone(), joined: false };
        let task = start(Landing { computations: self.clone(), line, computation: computation.clone(), done: false });
        computation.task.get_or_init(|| task);
        Boarded::Waits(waiter)
    }

    /// How many computations are under way.
    pub(super) fn count(&self) -> usize {
        self.aloft().len()
    }

    /// Nobody joins what is under way now.
    pub(super) fn displace(&self) {
        let displaced = std::mem::take(&mut *self.aloft());
        drop(displaced);
    }

    fn remove(&self, line: &Line, computation: &Arc<Computation>) {
        let mut aloft = self.aloft();
        if aloft.get(line).is_some_and(|found| Arc::ptr_eq(found, computation)) {
            aloft.remove(line);
        }
    }
}

/// What boarding came to.
pub(super) enum Boarded<T> {
    /// A computation is waited for.
    Waits(Waiter),
    /// The value is kept already.
    Kept(T),
}

/// A computation as its task sees it. A task that ends without an outcome, as when its runtime does, leaves nobody waiting.
pub(super) struct Landing {
    computations: Arc<Computations>,
    line: Line,
    pub(super) computation: Arc<Computation>,
    done: bool,
}

impl Landing {
    pub(super) const fn key(&self) -> &CacheKey {
        &self.line.0
    }

    /// The computation is over: whoever waits is told. An error stays and tells others for as long as `hold`.
    pub(super) async fn land(mut self, outcome: Outcome, hold: Duration) {
        self.done = true;
        let stays = outcome.is_err();
        if !stays {
            self.computations.remove(&self.line, &self.computation);
        }
        self.computation.outcome.set(Some(outcome));
        if stays {
            tokio::time::sleep(hold).await;
            self.computations.remove(&self.line, &self.computation);
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.computations.remove(&self.line, &self.computation);
        if !self.done {
            self.computation.outcome.set(Some(Err(CacheError::Dropped)));
        }
    }
}

/// One who waits for a computation.
pub(super) struct Waiter {
    computations: Arc<Computations>,
    line: Line,
    computation: Arc<Computation>,
    /// Whether the computation was another's.
    pub(super) joined: bool,
}

impl Waiter {
    /// What the computation brought. One that is over at once, as all are while a runtime shuts down, is a step of its reader's task
    /// all the same: a loop of reads ends when that task does.
    pub(super) async fn outcome(&self) -> Outcome {
        tokio::task::coop::consume_budget().await;
        self.computation.outcome.until(Option::is_some).await.unwrap_or(Err(CacheError::Dropped))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut aloft = self.computations.aloft();
        let was_last = self.computation.waiters.fetch_sub(1, Ordering::Relaxed) == 1;
        if !was_last || self.computation.outcome.get().is_some() {
            return;
        }
        if aloft.get(&self.line).is_some_and(|found| Arc::ptr_eq(found, &self.computation)) {
            aloft.remove(&self.line);
        }
        drop(aloft);
        if let Some(task) = self.computation.task.get() {
            task.abort();
        }
    }
}
