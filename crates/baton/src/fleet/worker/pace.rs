//! How much to claim ahead: what the handlers finish in a few round trips, and not more.

use std::time::Duration;

use tokio::time::Instant;

/// Work to have prefetched beyond what runs, in time.
const AHEAD: Duration = Duration::from_millis(20);
/// The most messages to have prefetched or on their way.
const MOST: f64 = 16_384.0;
/// The most messages in one claim.
const MOST_AT_ONCE: usize = 4_096;
/// Time at work after which messages are counted up to a rate,
const A_WHILE: Duration = Duration::from_millis(5);
/// or this many messages a permit: no more than one a permit can end together by chance.
const MANY_A_PERMIT: usize = 4;

/// The measured pace of a queue's handlers, all together, and what was asked for on its account.
#[derive(Default)]
pub(super) struct Pace {
    /// Messages a second while there was work, a moving average; nothing before the first.
    rate: Option<f64>,
    /// Ended since the rate was taken, and the time at work since then.
    ended: usize,
    busy: Duration,
    /// Since when there is work.
    since: Option<Instant>,
    on_their_way: usize,
    /// Whether messages had to go back unbegun and no handler has ended since.
    overstayed: bool,
}

impl Pace {
    /// There is work from now on.
    pub(super) fn works(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// There is none at the moment.
    pub(super) fn rests(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.busy += now.saturating_duration_since(since);
        }
    }

    /// Handlers have ended.
    pub(super) const fn ended(&mut self, count: usize) {
        self.ended += count;
        self.overstayed = false;
    }

    /// Messages waited too long for a handler.
    pub(super) const fn overstayed(&mut self) {
        self.overstayed = true;
    }

    pub(super) const fn has_overstayed(&self) -> bool {
        self.overstayed
    }

    /// Takes the rate anew if there is enough to tell it by.
    pub(super) fn measure(&mut self, now: Instant, permits: usize) {
        if let Some(since) = &mut self.since {
            self.busy += now.saturating_duration_since(*since);
            *since = now;
        }
        if self.ended == 0 || (self.busy < A_WHILE && self.ended < permits.saturating_mul(MANY_A_PERMIT)) {
            return;
        }
        let rate = self.ended as f64 / self.busy.as_secs_f64().max(1e-6);
        self.rate = Some(self.rate.map_or(rate, |average| (average + rate) / 2.0));
        (self.ended, self.busy) = (0, Duration::ZERO);
    }

    /// How many messages to claim now, with `have` of them prefetched or at work, if any.
    pub(super) fn wanted(&self, permits: usize, have: usize, claims_under_way: usize) -> Option<u32> {
        let want = permits.saturating_add(self.ahead()).saturating_sub(have + self.on_their_way);
        let wanted = want > 0 && have <= self.claim_at(permits, claims_under_way)?;
        wanted.then(|| u32::try_from(want.min(MOST_AT_ONCE)).unwrap_or(1))
    }

    /// Whether messages that were asked for are on their way.
    pub(super) const fn is_asking(&self) -> bool {
        self.on_their_way > 0
    }

    /// With how many messages prefetched or at work the next claim is wanted, if it is with any.
    pub(super) fn claim_at(&self, permits: usize, claims_under_way: usize) -> Option<usize> {
        let ahead = self.ahead();
        let but = |least: usize| permits.saturating_add(ahead).checked_sub(self.on_their_way.saturating_add(least));
        if claims_under_way > 0 {
            // A second claim is worth its call only if it brings many.
            return but(permits.max(ahead / 4).max(1));
        }
        // A free permit is; what is claimed ahead comes in parts.
        let free_permit = permits.checked_sub(self.on_their_way + 1);
        free_permit.max(but((ahead / 4).max(1)))
    }

    fn ahead(&self) -> usize {
        match self.rate {
            Some(rate) if !self.overstayed => (rate * AHEAD.as_secs_f64()).min(MOST) as usize,
            _ => 0,
        }
    }

    pub(super) const fn asked(&mut self, n: u32) {
        self.on_their_way += n as usize;
    }

    /// A claim of `n` was answered, or is waited for no longer.
    pub(super) const fn answered(&mut self, n: u32) {
        self.on_their_way = self.on_their_way.saturating_sub(n as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace after this many messages ended in this time.
    fn paced(permits: usize, ended: usize, time: Duration) -> Pace {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.wanted(permits, 0, 0), u32::try_from(permits).ok(), "nothing is known: one a permit");
        pace.works(start);
        pace.ended(ended);
        pace.measure(start + time, permits);
        pace
    }

    #[test]
    fn slow_handlers_claim_few_and_fast_ones_many() {
        let slow = paced(8, 8, Duration::from_millis(100));
        assert_eq!(slow.wanted(8, 8, 0), Some(1));
        assert_eq!(slow.wanted(8, 9, 0), None);
        let mut fast = paced(64, 512, Duration::from_micros(100));
        assert_eq!(fast.wanted(64, 0, 0), Some(4_096));
        fast.asked(4_096);
        assert_eq!(fast.wanted(64, 0, 1), Some(4_096));
        assert_eq!(fast.wanted(64, 10_000, 1), None);
        fast.answered(4_096);
        assert_eq!(fast.wanted(64, 16_000, 0), None, "not for a few");
        assert_eq!(fast.wanted(64, 12_000, 0), Some(4_096));
    }

    #[test]
    fn the_pace_is_that_of_all_together_whatever_keeps_them_from_running_at_once() {
        // Two cores, a millisecond each, 64 permits: 40 in 20 ms.
        let busy = paced(64, 200, Duration::from_millis(100));
        assert_eq!(busy.wanted(64, 64, 0), Some(40));
    }

    #[test]
    fn messages_that_end_together_by_chance_set_no_pace() {
        let mut pace = paced(8, 7, Duration::from_millis(1));
        assert_eq!(pace.wanted(8, 8, 0), None);
        let later = Instant::now() + Duration::from_secs(1);
        pace.rests(later);
        pace.measure(later + Duration::from_secs(100), 8);
        assert_eq!(pace.wanted(8, 8, 0), None, "seven a second");
    }

    #[test]
    fn as_many_permits_as_there_are_numbers_are_no_more_than_a_claim_holds() {
        let mut pace = paced(8, 1_000, Duration::from_millis(1));
        pace.ended(1);
        pace.measure(Instant::now(), usize::MAX);
        assert_eq!(pace.wanted(usize::MAX, 8, 0), Some(4_096));
        pace.asked(4_096);
        assert_eq!((pace.wanted(usize::MAX, 8, 1), pace.claim_at(usize::MAX, 1)), (None, Some(0)));
    }

    #[test]
    fn after_an_overstay_only_free_permits_are_filled_until_a_handler_ends() {
        let mut pace = paced(8, 1_000, Duration::from_millis(1));
        pace.overstayed();
        assert_eq!(pace.wanted(8, 8, 0), None);
        assert_eq!(pace.wanted(8, 5, 0), Some(3));
        pace.ended(1);
        assert!(pace.wanted(8, 8, 0).is_some());
    }
}
