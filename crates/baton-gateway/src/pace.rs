//! How fast requests are answered and queues are worked off: after how long it is worth to come again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use baton::{Name, store::Survey};
use tokio::time::{Duration, Instant};

/// The seconds where nothing was measured.
const UNKNOWN: u64 = 5;
/// The most seconds.
const LONGEST: u64 = 60;
/// The time over which a pace is measured.
const SPAN: Duration = Duration::from_millis(500);
/// The part of a full queue that must go before it has room again.
const PART_OF_A_QUEUE: f64 = 0.01;

/// The pace of one kind of thing.
#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    since: Instant,
    ended: u64,
    per_second: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { state: Mutex::new(Counted { since: Instant::now(), ended: 0, per_second: 0.0 }) }
    }
}

impl Pace {
    /// One has ended.
    pub(crate) fn ended(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended += 1;
        // To look at the clock costs more than to count.
        if state.ended.is_multiple_of(16) {
            state.measure();
        }
    }

    /// After how many seconds as many as this have ended.
    pub(crate) fn seconds_for(&self, count: usize) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.measure();
        seconds(count as f64, state.per_second)
    }
}

impl Counted {
    fn measure(&mut self) {
        let span = self.since.elapsed();
        if span >= SPAN {
            let now = self.ended as f64 / span.as_secs_f64();
            // Half of what was: a single odd span moves it half way.
            self.per_second = if self.per_second > 0.0 { f64::midpoint(self.per_second, now) } else { now };
            (self.since, self.ended) = (Instant::now(), 0);
        }
    }
}

/// Trouble that lasts: how long it has lasted is the best that is known of how long it still will.
#[derive(Debug, Default)]
pub(crate) struct Lasting(Mutex<Option<(Instant, Instant)>>);

impl Lasting {
    /// It was met again; after how many seconds it may be over: as many as it has lasted so far. What was not met for
    /// [`LONGEST`] is new.
    pub(crate) fn met(&self) -> u64 {
        let (mut state, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let is_same = |(_, last): &(Instant, Instant)| now - *last < Duration::from_secs(LONGEST);
        let since = state.filter(is_same).map_or(now, |(since, _)| since);
        *state = Some((since, now));
        (now - since).as_secs().clamp(1, LONGEST)
    }

    /// It is over.
    pub(crate) fn over(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The pace at which full queues are worked off.
#[derive(Debug, Default)]
pub(crate) struct QueuePaces {
    seen: Mutex<BTreeMap<Name, Seen>>,
}

#[derive(Debug)]
struct Seen {
    at: Instant,
    ended: u64,
    per_second: f64,
    ready: u64,
}

impl Seen {
    /// After how many seconds there may be room, if the queue is full.
    fn until_room(&self) -> u64 {
        seconds(self.ready as f64 * PART_OF_A_QUEUE, self.per_second)
    }

    /// After how many seconds what waits now is worked off.
    fn until_empty(&self) -> u64 {
        seconds(self.ready as f64 + 1.0, self.per_second)
    }
}

impl QueuePaces {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<Name, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how the queues stand, by which their pace is known. Empty queues have no pace.
    pub(crate) fn look(&self, survey: &Survey) {
        let (at, mut seen) = (Instant::now(), self.seen());
        seen.retain(|queue, _| survey.queues.iter().any(|books| books.queue == *queue && books.ready > 0));
        for books in survey.queues.iter().filter(|books| books.ready > 0) {
            let (ended, ready) = (books.done + books.failed + books.cancelled, books.ready);
            let per_second = seen.get(&books.queue).map_or(0.0, |before| {
                ended.saturating_sub(before.ended) as f64 / before.at.elapsed().as_secs_f64().max(0.001)
            });
            seen.insert(books.queue.clone(), Seen { at, ended, per_second, ready });
        }
    }

    /// After how many seconds there may be room in a queue that is full.
    pub(crate) fn until_room(&self, queue: &Name) -> u64 {
        self.seen().get(queue).map_or(1, Seen::until_room)
    }

    /// After how many seconds what waits in a queue is worked off.
    pub(crate) fn until_empty(&self, queue: &Name) -> u64 {
        self.seen().get(queue).map_or(1, Seen::until_empty)
    }
}

fn seconds(count: f64, per_second: f64) -> u64 {
    if per_second <= 0.0 { UNKNOWN } else { ((count / per_second).ceil() as u64).clamp(1, LONGEST) }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, advance};

    use super::{Lasting, seconds};

    #[tokio::test(start_paused = true)]
    async fn trouble_may_last_as_long_as_it_has_lasted() {
        let trouble = Lasting::default();
        let mut told = Vec::new();
        for pause in [0, 3, 7, 40, 30, 100, 5] {
            advance(Duration::from_secs(pause)).await;
            told.push(trouble.met());
        }
        trouble.over();
        told.push(trouble.met());
        assert_eq!(told, [1, 3, 10, 50, 60, 1, 5, 1]);
    }

    #[test]
    fn what_is_told_lies_between_a_second_and_a_minute() {
        assert_eq!([(0.0, 5.0), (10.0, 5.0), (1e9, 5.0), (7.0, 0.0)].map(|(n, rate)| seconds(n, rate)), [1, 2, 60, 5]);
    }
}
