//! How much to claim ahead: what the handlers finish in a few round trips, and not more.

use std::time::Duration;

/// Work to have in hand beyond what runs, in time.
const AHEAD: Duration = Duration::from_millis(20);
/// The most messages to have in hand or on their way.
const MOST: usize = 16_384;
/// The most messages in one claim.
const MOST_AT_ONCE: usize = 4_096;

/// The measured time of a handler, and what was asked for on its account.
pub(super) struct Pace {
    concurrency: usize,
    /// Nanoseconds a message, a moving average; nothing before the first.
    handler_ns: Option<f64>,
    on_their_way: usize,
}

impl Pace {
    pub(super) const fn new(concurrency: usize) -> Self {
        Self { concurrency, handler_ns: None, on_their_way: 0 }
    }

    /// `count` messages took this long each.
    pub(super) fn took(&mut self, each: Duration, count: u32) {
        let ns = each.as_nanos() as f64;
        let weight = (f64::from(count) / 64.0).min(0.5);
        self.handler_ns = Some(self.handler_ns.map_or(ns, |average| average + (ns - average) * weight));
    }

    /// How many messages to claim now, if any.
    pub(super) fn wanted(&self, running: usize, in_hand: usize, claims_under_way: usize) -> Option<u32> {
        let have = running + in_hand + self.on_their_way;
        let want = (self.concurrency + self.ahead()).saturating_sub(have);
        // A second claim is worth its call only if it brings many.
        let least = if claims_under_way == 0 { 1 } else { self.concurrency.max(self.ahead() / 4).max(1) };
        (want >= least).then(|| u32::try_from(want.min(MOST_AT_ONCE)).unwrap_or(1))
    }

    fn ahead(&self) -> usize {
        let Some(ns) = self.handler_ns else { return 0 };
        let each = (ns / self.concurrency.max(1) as f64).max(1.0);
        ((AHEAD.as_nanos() as f64 / each) as usize).min(MOST)
    }

    pub(super) fn asked(&mut self, n: u32) {
        self.on_their_way += n as usize;
    }

    /// A claim of `n` was answered, or is waited for no longer.
    pub(super) fn answered(&mut self, n: u32) {
        self.on_their_way = self.on_their_way.saturating_sub(n as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_handlers_claim_few_and_fast_ones_many() {
        let mut slow = Pace::new(8);
        assert_eq!(slow.wanted(0, 0, 0), Some(8), "nothing is known: one each");
        slow.took(Duration::from_millis(100), 1);
        assert_eq!(slow.wanted(8, 0, 0), Some(1));
        assert_eq!(slow.wanted(8, 1, 0), None);
        let mut fast = Pace::new(64);
        fast.took(Duration::from_nanos(200), 512);
        assert_eq!(fast.wanted(0, 0, 0), Some(4_096));
        fast.asked(4_096);
        assert_eq!(fast.wanted(0, 0, 1), Some(4_096));
        assert_eq!(fast.wanted(0, 10_000, 1), None);
        fast.answered(4_096);
        assert_eq!(fast.wanted(0, 16_000, 0), Some(448));
    }
}
