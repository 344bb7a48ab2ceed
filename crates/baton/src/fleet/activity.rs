//! How busy a generator is, for its node to decide whether it works too.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// The time that is looked back on.
const WINDOW: Duration = Duration::from_secs(1);

/// What a generator tells of itself.
#[derive(Debug, Default)]
pub(super) struct Activity {
    full: AtomicBool,
    pushing: Mutex<Pushing>,
}

#[derive(Debug, Default)]
struct Pushing {
    /// Since when pushes are under way, if any are.
    since: Option<Instant>,
    /// For how long some were, before that.
    before: Duration,
    /// For how long some had been in all at earlier looks, as far back as the window reaches.
    looks: VecDeque<(Instant, Duration)>,
}

impl Activity {
    /// Whether pushes are under way from now on.
    pub(super) fn pushing(&self, under_way: bool) {
        let mut pushing = self.lock();
        match (pushing.since, under_way) {
            (None, true) => pushing.since = Some(Instant::now()),
            (Some(since), false) => {
                pushing.before += since.elapsed();
                pushing.since = None;
            }
            _ => {}
        }
    }

    /// Whether the store does not take more at the moment.
    pub(super) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Whether pushes were under way for over half of the last second.
    pub(super) fn is_busy(&self) -> bool {
        let now = Instant::now();
        let mut pushing = self.lock();
        let total = pushing.before + pushing.since.map_or(Duration::ZERO, |since| now - since);
        while pushing.looks.get(1).is_some_and(|(at, _)| now - *at >= WINDOW) {
            pushing.looks.pop_front();
        }
        let before = pushing.looks.front().filter(|(at, _)| now - *at >= WINDOW / 2).map(|(_, total)| *total);
        pushing.looks.push_back((now, total));
        total - before.unwrap_or_default() > WINDOW / 2
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pushing> {
        self.pushing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn busy_is_over_half_of_the_last_second() {
        let activity = Activity::default();
        for (under_way, ms, busy) in
            [(true, 400, false), (true, 200, true), (false, 200, true), (false, 400, false), (true, 100, false)]
        {
            activity.pushing(under_way);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            assert_eq!(activity.is_busy(), busy, "after {ms} ms more, pushing: {under_way}");
        }
    }
}
