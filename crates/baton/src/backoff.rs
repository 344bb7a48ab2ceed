//! Ever longer pauses.

use std::time::Duration;

/// Pauses that double from a first to a longest one.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    /// How many there have been.
    past: u32,
}

impl Backoff {
    /// Begins with the first.
    #[must_use]
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, past: 0 }
    }

    /// The pause after so many others.
    #[must_use]
    pub(crate) fn after(&self, others: u32) -> Duration {
        self.first.saturating_mul(1_u32.checked_shl(others).unwrap_or(u32::MAX)).min(self.longest)
    }

    /// The pause that is due now; the next one is longer.
    #[must_use]
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.after(self.past);
        self.past = self.past.saturating_add(1);
        pause
    }

    /// Begins anew: it went well.
    pub(crate) const fn reset(&mut self) {
        self.past = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(35));
        let pauses = |backoff: &mut Backoff| [(); 4].map(|()| backoff.pause().as_millis());
        assert_eq!(pauses(&mut backoff), [10, 20, 35, 35]);
        backoff.reset();
        assert_eq!(pauses(&mut backoff), [10, 20, 35, 35]);
        assert_eq!(backoff.after(u32::MAX), Duration::from_millis(35));
    }
}
