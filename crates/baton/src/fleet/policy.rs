//! How a queue is worked: how many at once, how long, and how often after a failure.

use std::time::Duration;

use super::handler::{Failure, Retry};
use crate::{
    backoff::Backoff,
    message::{MAX_LAST_ERROR_BYTES, Outcome},
    store::MAX_RETRY_MS,
};

/// The longest text that is kept of an error.
pub(super) const MAX_ERROR_BYTES: usize = 16 << 10;

/// What stands where a text was cut.
const ELLIPSIS: &str = "…";

/// How often a handler may have a message retried by [`Failure::retry_after`] where its queue has fewer retries.
const MOST_PUT_OFF: u32 = 10;

/// How the messages of a queue are run.
#[derive(Debug, Clone)]
pub struct QueuePolicy {
    /// Handlers at work at once in one node; 64 by default.
    pub concurrency: usize,
    /// Attempts after the first. 0, the default, sends every failure to the errors, unless its handler said when to try
    /// again: such a failure is retried up to ten times all the same.
    pub retries: u32,
    /// The pause before the first retry, 1 s by default; it doubles with each, with up to a quarter more or less by
    /// chance.
    pub backoff: Duration,
    /// The longest pause, whatever chance adds; an hour by default.
    pub max_backoff: Duration,
    /// How long one attempt may take; without a limit by default.
    pub timeout: Option<Duration>,
}

impl Default for QueuePolicy {
    fn default() -> Self {
        Self {
            concurrency: 64,
            retries: 0,
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(3600),
            timeout: None,
        }
    }
}

impl QueuePolicy {
    /// What becomes of a message that failed after `attempts` earlier failures; `chance` is a number from 0 to 1.
    pub(super) fn after_failure(&self, attempts: u32, failure: Failure, chance: f64) -> Outcome {
        let dead = |error: String| Outcome::Failed { error: shortened(error, MAX_ERROR_BYTES) };
        let after = match failure.retry {
            Retry::Never => return dead(failure.error),
            Retry::ByPolicy if attempts >= self.retries => return dead(failure.error),
            Retry::After(_) | Retry::Later if attempts >= self.retries.max(MOST_PUT_OFF) => return dead(failure.error),
            Retry::After(after) => after,
            Retry::ByPolicy | Retry::Later => {
                let longest = self.max_backoff.min(Duration::from_millis(MAX_RETRY_MS));
                let pause = Backoff::new(self.backoff, longest).after(attempts);
                // The bound holds after the jitter, and those who have reached it are spread below it.
                let (least, most) = (pause.mul_f64(0.75), pause.mul_f64(1.25).min(longest));
                (least + most.saturating_sub(least).mul_f64(chance.clamp(0.0, 1.0))).min(longest)
            }
        };
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let error = shortened(failure.error, MAX_LAST_ERROR_BYTES - ELLIPSIS.len());
        Outcome::Retry { after_ms: after_ms.min(MAX_RETRY_MS), error }
    }
}

/// A text cut to `most` bytes, and a sign that it was.
pub(super) fn shortened(mut error: String, most: usize) -> String {
    if error.len() > most {
        let end = (0..=most).rev().find(|at| error.is_char_boundary(*at)).unwrap_or(0);
        error.truncate(end);
        error.push_str(ELLIPSIS);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_off_counts_as_an_attempt_and_ends() {
        let later = || Failure::retry_after(Duration::from_secs(1), "later");
        let retried = |retries| {
            let policy = QueuePolicy { retries, ..QueuePolicy::default() };
            (0..99).take_while(|attempts| policy.after_failure(*attempts, later(), 0.5) != dead_of("later")).count()
        };
        assert_eq!([0, 3, 10, 25].map(retried), [10, 10, 10, 25]);
    }

    #[test]
    fn no_chance_makes_a_pause_longer_than_the_longest() {
        let longest = Duration::from_secs(3);
        let policy = QueuePolicy { retries: 99, max_backoff: longest, ..QueuePolicy::default() };
        let after = |attempts, chance| match policy.after_failure(attempts, Failure::new("no"), chance) {
            Outcome::Retry { after_ms, .. } => after_ms,
            outcome => panic!("{outcome:?}"),
        };
        assert_eq!([0.0, 0.5, 1.0].map(|chance| after(0, chance)), [750, 1_000, 1_250]);
        assert_eq!([0.0, 0.5, 1.0].map(|chance| after(1, chance)), [1_500, 2_000, 2_500]);
        for attempts in [2, 3, 40] {
            assert_eq!([0.0, 0.5, 1.0].map(|chance| after(attempts, chance)), [2_250, 2_625, 3_000]);
        }
    }

    fn dead_of(error: &str) -> Outcome {
        Outcome::Failed { error: error.to_owned() }
    }

    #[test]
    fn no_pause_is_longer_than_a_store_takes() {
        let policy = QueuePolicy {
            retries: u32::MAX,
            backoff: Duration::MAX,
            max_backoff: Duration::MAX,
            ..QueuePolicy::default()
        };
        let outcome = policy.after_failure(40, Failure::new("no"), 1.0);
        assert_eq!(outcome, Outcome::Retry { after_ms: MAX_RETRY_MS, error: "no".to_owned() });
    }

    #[test]
    fn failures_retry_with_growing_pauses_and_then_die() {
        let policy = QueuePolicy { retries: 3, max_backoff: Duration::from_secs(5), ..QueuePolicy::default() };
        let after = |attempts| match policy.after_failure(attempts, Failure::new("no"), 0.5) {
            Outcome::Retry { after_ms, .. } => Some(after_ms),
            _ => None,
        };
        assert_eq!([0, 1, 2, 3].map(after), [Some(1000), Some(2000), Some(4000), None]);
        let dead = Outcome::Failed { error: "no".to_owned() };
        assert_eq!(policy.after_failure(0, Failure::fatal("no"), 0.5), dead);
        assert_eq!(QueuePolicy::default().after_failure(0, Failure::new("no"), 0.0), dead);
        let told = Failure::retry_after(Duration::from_millis(7), "later");
        assert_eq!(
            policy.after_failure(9, told.clone(), 0.9),
            Outcome::Retry { after_ms: 7, error: "later".to_owned() }
        );
        assert_eq!(policy.after_failure(10, told, 0.9), Outcome::Failed { error: "later".to_owned() });
        let Outcome::Failed { error } = policy.after_failure(9, Failure::new("ä".repeat(20_000)), 0.5) else {
            panic!()
        };
        assert!(error.len() <= MAX_ERROR_BYTES + 3);
        let Outcome::Retry { error, .. } = policy.after_failure(0, Failure::new("ä".repeat(20_000)), 0.5) else {
            panic!()
        };
        assert!(error.len() <= MAX_LAST_ERROR_BYTES && error.ends_with('…'));
    }
}
