//! How many workers there are to be, and which leave. Pure: what is needed and the time go in, a decision comes out.
//!
//! The number is bounded by construction: whatever is needed, it is cut to the limits, and workers that still finish
//! what they run count against the upper one. It grows at once, and falls only when less was wanted for a while, by a
//! margin: a load that stays where it is, with the noise that every load has, moves nothing.

use std::{collections::VecDeque, time::Duration};

/// How long less must have been wanted before workers leave.
pub(super) const LOWER_FOR: Duration = Duration::from_secs(10);
/// How long a spare may be without its first message.
pub(super) const UNUSED_FOR: Duration = Duration::from_secs(1);
/// How long a spare that was never used is not replaced,
const ENOUGH_FOR: Duration = Duration::from_secs(30);
/// unless so much more is needed than when it was in vain.
const MORE: f64 = 1.1;
/// How much more than is needed there may be when a worker leaves, so that noise does not call it back.
const MARGIN: f64 = 1.1;

/// How many workers there may be on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// So many always.
    pub min: usize,
    /// Never more; at least the former.
    pub max: usize,
}

impl Limits {
    fn cut(self, need: f64) -> usize {
        // What is counted in floating point is not to ask for one more by its last digit. The cast saturates.
        ((need - 1e-9).ceil().max(0.0) as usize).clamp(self.min, self.max.max(self.min))
    }
}

/// A worker as the decision sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hand {
    /// Its number; younger ones have higher ones.
    pub(super) number: u64,
    /// Whether its process runs; if not, it waits to be started again after a crash.
    pub(super) runs: bool,
    /// How long it has been in the fleet without ever being given a message.
    pub(super) unused_for: Option<Duration>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Decision {
    /// How many are to be started.
    pub(super) start: usize,
    /// Those that leave because less is needed.
    pub(super) surplus: Vec<u64>,
    /// Spares that leave because they were never used.
    pub(super) unused: Vec<u64>,
}

/// What was found enough when spares were in vain.
#[derive(Debug, Clone, Copy)]
struct Enough {
    need: f64,
    workers: usize,
    until: Duration,
}

/// Decides again and again; see the module.
#[derive(Debug)]
pub(super) struct Decider {
    limits: Limits,
    /// What was needed lately, and when.
    needs: VecDeque<(Duration, f64)>,
    enough: Option<Enough>,
}

impl Decider {
    pub(super) const fn new(limits: Limits) -> Self {
        Self { limits, needs: VecDeque::new(), enough: None }
    }

    /// Decides at this time, with so many workers needed, `hands` at hand and so many others still finishing what they run.
    pub(super) fn decide(&mut self, now: Duration, need: f64, hands: &[Hand], leaving: usize) -> Decision {
        self.needs.push_back((now, need));
        while self.needs.front().is_some_and(|(at, _)| now.saturating_sub(*at) > LOWER_FOR) {
            self.needs.pop_front();
        }
        let most = self.needs.iter().map(|(_, need)| *need).fold(0.0, f64::max);
        let Limits { min, max } = self.limits;
        // The first to leave: what does not run, what was never used, then the youngest.
        let mut order: Vec<&Hand> = hands.iter().collect();
        order.sort_by_key(|hand| (hand.runs, hand.unused_for.is_none(), std::cmp::Reverse(hand.number)));
        let keep = self.limits.cut(most * MARGIN);
        let surplus: Vec<u64> = order.iter().take(hands.len().saturating_sub(keep)).map(|hand| hand.number).collect();
        let stay = hands.len() - surplus.len();
        let in_vain = |hand: &&&Hand| hand.unused_for.is_some_and(|time| time >= UNUSED_FOR);
        let unused: Vec<u64> = order
            .iter()
            .skip(surplus.len())
            .filter(in_vain)
            .take(stay.saturating_sub(min))
            .map(|hand| hand.number)
            .collect();
        let stay = stay - unused.len();
        if !unused.is_empty() {
            self.enough = Some(Enough { need: most, workers: stay, until: now + ENOUGH_FOR });
        }
        self.enough = self.enough.filter(|enough| now < enough.until && need <= enough.need * MORE);
        let wanted = self.limits.cut(need).min(self.enough.map_or(max, |enough| enough.workers.max(min)));
        // Processes are never more than the limit, those that leave among them.
        let room = max.max(min).saturating_sub(hands.len() + leaving);
        Decision { start: wanted.saturating_sub(stay).min(room), surplus, unused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn hand(number: u64) -> Hand {
        Hand { number, runs: true, unused_for: None }
    }

    fn decider(min: usize, max: usize) -> Decider {
        Decider::new(Limits { min, max })
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn whatever_is_needed_the_limits_hold() {
        for need in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e-12, 3.0, 3.000_000_000_1, 3.1] {
            let started = decider(1, 4).decide(Duration::ZERO, need, &[], 0).start;
            assert!((1..=4).contains(&started), "{need}: {started}");
        }
        assert_eq!(decider(0, 4).decide(Duration::ZERO, 3.000_000_000_1, &[], 0).start, 3);
        assert_eq!(decider(0, 4).decide(Duration::ZERO, 3.1, &[], 0).start, 4);
        assert_eq!(decider(2, 2).decide(Duration::ZERO, 100.0, &[hand(0), hand(1)], 0), Decision::default());
        assert_eq!(decider(0, 0).decide(Duration::ZERO, 100.0, &[], 0), Decision::default());
    }

    #[test]
    fn less_must_be_wanted_for_a_while_and_then_all_that_is_too_much_leaves_together() {
        let mut decider = decider(1, 8);
        let hands: Vec<Hand> = (0..8).map(hand).collect();
        assert_eq!(decider.decide(Duration::ZERO, 8.0, &hands, 0), Decision::default());
        assert_eq!(decider.decide(seconds(5.0), 0.0, &hands, 0), Decision::default());
        assert_eq!(decider.decide(seconds(10.0), 0.0, &hands, 0), Decision::default());
        let decision = decider.decide(seconds(10.5), 0.0, &hands, 0);
        assert_eq!(decision.surplus, [7, 6, 5, 4, 3, 2, 1], "the youngest, and the lower limit stays");
        assert_eq!((decision.start, decision.unused.len()), (0, 0));
    }

    #[test]
    fn what_still_finishes_counts_against_the_upper_limit() {
        assert_eq!(decider(1, 8).decide(Duration::ZERO, 8.0, &[hand(9)], 5).start, 2);
        assert_eq!(decider(1, 8).decide(Duration::ZERO, 8.0, &[hand(9)], 9).start, 0);
    }

    #[test]
    fn what_does_not_run_leaves_first() {
        let mut decider = decider(1, 3);
        let hands = [hand(0), Hand { runs: false, ..hand(1) }, hand(2)];
        assert_eq!(decider.decide(Duration::ZERO, 1.5, &hands, 0).surplus, [1]);
    }

    #[test]
    fn an_unused_spare_leaves_soon_and_is_not_replaced_unless_more_is_needed() {
        let mut decider = decider(1, 8);
        let unused = |number, time| Hand { unused_for: Some(seconds(time)), ..hand(number) };
        let hands = [unused(0, 9.0), hand(1), unused(2, 0.9), unused(3, 1.0)];
        let decision = decider.decide(Duration::ZERO, 4.0, &hands, 0);
        assert_eq!(decision, Decision { unused: vec![3, 0], ..Decision::default() });
        let hands = [hand(1), hand(2)];
        assert_eq!(decider.decide(seconds(1.0), 4.0, &hands, 0).start, 0);
        assert_eq!(decider.decide(seconds(29.0), 4.3, &hands, 0).start, 0, "noise");
        assert_eq!(decider.decide(seconds(30.0), 4.0, &hands, 0).start, 2);
        // A burst is not noise.
        decider.decide(seconds(31.0), 4.0, &[hand(1), hand(2), unused(4, 1.0)], 0);
        assert_eq!(decider.decide(seconds(32.0), 100.0, &hands, 0).start, 6);
    }

    #[test]
    fn the_lower_limit_stays_used_or_not() {
        let unused = |number| Hand { unused_for: Some(seconds(100.0)), ..hand(number) };
        assert_eq!(decider(2, 8).decide(Duration::ZERO, 0.0, &[unused(0), unused(1)], 0), Decision::default());
    }
}
