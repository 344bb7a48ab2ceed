//! Outcomes whose results and follow-ups the store had no room for. They are reported again after a pause, and nothing
//! else waits for them. Whoever stops has so much patience; then their messages go back, and run again elsewhere.

use std::time::Duration;

use tokio::time::Instant;

use crate::message::{Outcome, Run};

/// How long after a refusal they are reported again.
const PAUSE: Duration = Duration::from_millis(250);

/// With so many messages, or bytes that they bring, nothing further is begun: what handlers have done is kept in memory,
/// and done again elsewhere if this process ends.
const MANY_MESSAGES: u64 = 1_000;
const MANY_BYTES: usize = 16 << 20;

#[derive(Default)]
pub(super) struct Unplaced {
    runs: Vec<Run>,
    /// Whether there were too many of them when they were counted last.
    is_crowded: bool,
    /// When the first refusal was that was not followed by a report that fitted, and when to try again.
    since: Option<(Instant, Instant)>,
}

impl Unplaced {
    /// Notes what an answered report left; whether that is news.
    pub(super) fn note(&mut self, runs: Vec<Run>, now: Instant) -> bool {
        if runs.is_empty() {
            // Those that were not part of the report keep their pause: reports that fit do not put it off.
            self.since = self.since.filter(|_| !self.runs.is_empty());
            self.is_crowded &= !self.runs.is_empty();
            return false;
        }
        let before = self.since.map(|(since, _)| since);
        self.runs.extend(runs);
        let messages: u64 = self.runs.iter().map(|run| u64::from(run.range.len)).sum();
        let bytes: usize = self.runs.iter().map(|run| run.outcome.brings()).sum();
        self.is_crowded = messages >= MANY_MESSAGES || bytes >= MANY_BYTES;
        self.since = Some((before.unwrap_or(now), now + PAUSE));
        before.is_none()
    }

    /// What to report now: nothing before the pause is over. Without patience they go back.
    pub(super) fn take(&mut self, now: Instant, patience: Option<Duration>) -> Vec<Run> {
        let Some((since, again)) = self.since else { return Vec::new() };
        let gives_up = patience.is_some_and(|patience| since + patience <= now);
        if again > now && !gives_up {
            return Vec::new();
        }
        let mut runs = std::mem::take(&mut self.runs);
        if gives_up {
            runs.iter_mut().for_each(|run| run.outcome = Outcome::Back);
        }
        runs
    }

    /// All of them, for one whose session is over.
    pub(super) fn into_runs(self) -> Vec<Run> {
        self.runs
    }

    /// When to look again.
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.since.filter(|_| !self.runs.is_empty()).map(|(_, again)| again)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether nothing further should be begun until there is room.
    pub(super) const fn is_crowded(&self) -> bool {
        self.is_crowded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Name, Range};

    #[test]
    fn they_are_reported_again_after_a_pause_and_go_back_when_patience_ends() {
        let (mut unplaced, begun) = (Unplaced::default(), Instant::now());
        let result = Outcome::Done { result: Some(bytes::Bytes::from_static(b"1")), follow_ups: Vec::new() };
        let run =
            Run { claim_no: 1, queue: Name::new("q").unwrap(), range: Range { first: 1, len: 1 }, outcome: result };
        assert!(unplaced.note(vec![run.clone()], begun));
        assert_eq!(unplaced.take(begun, None), []);
        assert!(!unplaced.note(Vec::new(), begun + PAUSE / 2), "a report without them");
        assert_eq!(unplaced.look_at(), Some(begun + PAUSE));
        assert_eq!(unplaced.take(begun + PAUSE, Some(4 * PAUSE)), std::slice::from_ref(&run));
        assert!(!unplaced.note(vec![run.clone()], begun + PAUSE), "the same refusal goes on");
        let back = unplaced.take(begun + 4 * PAUSE, Some(4 * PAUSE));
        assert_eq!(back, [Run { outcome: Outcome::Back, ..run.clone() }]);
        assert!(!unplaced.note(Vec::new(), begun + 4 * PAUSE));
        assert!(unplaced.is_empty() && unplaced.look_at().is_none());
        assert!(unplaced.note(vec![run.clone()], begun + 5 * PAUSE), "it is another one");
        assert!(!unplaced.is_crowded());
        let many = Run { range: Range { first: 2, len: 1_000 }, ..run };
        unplaced.note(vec![many.clone()], begun + 5 * PAUSE);
        assert!(unplaced.is_crowded());
        assert_eq!(unplaced.take(begun + 6 * PAUSE, None).len(), 2);
        assert!(unplaced.is_crowded(), "until the report is answered");
        unplaced.note(Vec::new(), begun + 6 * PAUSE);
        assert!(!unplaced.is_crowded());
    }
}
