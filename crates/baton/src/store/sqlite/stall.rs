//! A long wait for the turn to write: noticed after a second, told with the name of the process that holds it up, and
//! told again when it is over.
//!
//! The thread that waits only notes since when; those who wait for its answer look. So a wait that nobody feels is not
//! told, and a turn that is free costs nothing but reading the clock.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Site, holder};
use crate::store::StoreEvent;

/// How long a wait is ordinary.
pub(super) const ORDINARY: Duration = Duration::from_secs(1);

/// The waits of one store's writers.
#[derive(Debug, Default)]
pub(super) struct Stall(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Since when each writer's thread waits, and which of the waits was told.
    waits: Vec<(u64, Instant)>,
    last: u64,
    told: Option<(u64, Instant)>,
}

/// A wait, until dropped.
pub(super) struct Wait<'a> {
    site: &'a Site,
    no: u64,
}

impl State {
    fn long_wait(&self) -> Option<(u64, Instant)> {
        self.waits.iter().find(|(_, since)| since.elapsed() >= ORDINARY).copied()
    }
}

impl Stall {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site {
    /// Notes that a thread begins to wait for its turn.
    pub(super) fn wait(&self) -> Wait<'_> {
        let mut state = self.stall.state();
        state.last += 1;
        let no = state.last;
        state.waits.push((no, Instant::now()));
        Wait { site: self, no }
    }

    /// Tells of a wait that has become long, unless that was done.
    pub(super) fn look_for_stall(&self) {
        let mut state = self.stall.state();
        let Some(wait) = state.long_wait().filter(|_| state.told.is_none()) else { return };
        state.told = Some(wait);
        drop(state);
        self.tell(&self.stall_event());
    }

    /// The wait that has become long, if there is one.
    pub(super) fn stalled(&self) -> Option<StoreEvent> {
        self.stall.state().long_wait().map(|_| self.stall_event())
    }

    fn stall_event(&self) -> StoreEvent {
        StoreEvent::Stalled { path: self.path.clone(), holder: holder::of(&self.path) }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = self.site.stall.state();
        state.waits.retain(|(no, _)| *no != self.no);
        let over = state.told.take_if(|(no, _)| *no == self.no);
        drop(state);
        if let Some((_, since)) = over {
            self.site.tell(&StoreEvent::Unstalled { path: self.site.path.clone(), after: since.elapsed() });
        }
    }
}
