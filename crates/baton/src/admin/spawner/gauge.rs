//! How many workers are needed: what arrives, what waits, and how long a handler takes. Pure: counts go in.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::message::Name;

/// The time in which what waits is to be worked off.
const WORKED_OFF_IN_S: f64 = 10.0;
/// How much of its time a slot is to be at work.
const AT_WORK: f64 = 0.8;
/// The time over which rates are taken,
const LONG: Duration = Duration::from_secs(10);
/// and the time over which they are if the load has changed: if the last of it differs by more than chance,
const SHORT: Duration = Duration::from_secs(2);
/// which is so many times the root of what was expected,
const CHANCE: f64 = 4.0;
/// and by this share of it: a smaller change is soon in the long run, and in the backlog.
const CHANGE: f64 = 0.25;

/// The counts of a queue at one instant. Those of what happened only grow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Counts {
    /// Messages that came to be worked on: pushed, requeued or to be tried again.
    pub(super) arrived: u64,
    /// Messages that wait to be claimed; none in a queue that is held back.
    pub(super) waiting: u64,
    /// Messages that somebody has claimed.
    pub(super) in_flight: u64,
    /// Messages whose handler has ended, as far as the books tell.
    pub(super) ended: u64,
    /// Messages whose handler has ended, as far as the nodes tell,
    pub(super) run: u64,
    /// and the seconds that took.
    pub(super) handler_s: f64,
    /// Whether the queue is held back.
    pub(super) paused: bool,
    /// Messages at work at once in one worker.
    pub(super) slots: usize,
    /// How much of the queue's load is this machine's, up to 1.
    pub(super) share: f64,
}

/// What the load comes to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Load {
    /// Messages that arrive in a second.
    pub(super) arrivals_per_s: f64,
    /// Messages that wait.
    pub(super) waiting: u64,
    /// How long a handler takes, on average.
    pub(super) handler_s: f64,
    /// Workers that are needed on this machine.
    pub(super) need: f64,
}

/// Measures again and again.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    looks: VecDeque<(Duration, BTreeMap<Name, Counts>)>,
    queues: BTreeMap<Name, Memory>,
}

/// What is remembered of a queue longer than rates are taken over.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    /// How long its handler took when something was last run.
    handler_s: f64,
    /// How much had ended when that last changed, or when nothing was at work,
    ended: u64,
    /// and when that was.
    since: Duration,
}

impl Gauge {
    /// What is needed at this time; the queues are those that this machine's workers work for.
    pub(super) fn measure(&mut self, now: Duration, counts: BTreeMap<Name, Counts>) -> Load {
        while self.looks.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= LONG) {
            self.looks.pop_front();
        }
        let (mut sum, mut all, mut ours, mut work_s) = (Load::default(), 0.0, 0.0, 0.0);
        for (name, it) in &counts {
            let handler_s = self.handler_time(now, name, it);
            if it.paused {
                continue;
            }
            let arrivals = self.arrivals(now, name, it);
            let flow = arrivals + it.waiting as f64 / WORKED_OFF_IN_S;
            let need = flow * handler_s / (AT_WORK * it.slots.max(1) as f64);
            (all, ours, work_s) = (all + need, ours + need * it.share, work_s + flow * handler_s);
            sum.arrivals_per_s += arrivals;
            sum.waiting = sum.waiting.saturating_add(it.waiting);
            // For now the sum of what flows; see below.
            sum.need += flow;
        }
        sum.handler_s = if sum.need > 0.0 { work_s / sum.need } else { 0.0 };
        // Whole workers are shared, each machine rounding up: together they are never too few.
        sum.need = if all > 0.0 { (all - 1e-9).ceil() * (ours / all) } else { 0.0 };
        if all > 0.0 && ours >= all {
            sum.need = all;
        }
        self.looks.push_back((now, counts));
        sum
    }

    /// Messages a second.
    fn arrivals(&self, now: Duration, name: &Name, it: &Counts) -> f64 {
        let since = |(at, counts): &(Duration, BTreeMap<Name, Counts>)| {
            let before = counts.get(name).map_or(0, |before| before.arrived);
            (it.arrived.saturating_sub(before) as f64, now.saturating_sub(*at).as_secs_f64().max(1e-3))
        };
        let Some((long, long_s)) = self.looks.front().map(since) else { return 0.0 };
        let recent = self.looks.iter().rev().find(|(at, _)| now.saturating_sub(*at) >= SHORT);
        let (short, short_s) = recent.map_or((long, long_s), since);
        let expected = long / long_s * short_s;
        let changed = (short - expected).abs() > (CHANCE * expected.max(1.0).sqrt()).max(CHANGE * expected);
        if changed { short / short_s } else { long / long_s }
    }

    /// Seconds that a handler takes on average. One that nobody has seen the end of takes at least as long as it has been
    /// waited for.
    fn handler_time(&mut self, now: Duration, name: &Name, it: &Counts) -> f64 {
        let before = self.looks.front().and_then(|(_, counts)| counts.get(name)).copied().unwrap_or_default();
        let memory = self.queues.entry(name.clone()).or_insert(Memory { ended: it.ended, since: now, handler_s: 0.0 });
        let run = it.run.saturating_sub(before.run);
        if run > 0 {
            memory.handler_s = (it.handler_s - before.handler_s).max(0.0) / run as f64;
        }
        if memory.ended != it.ended || it.in_flight == 0 {
            (memory.ended, memory.since) = (it.ended, now);
        }
        memory.handler_s.max(now.saturating_sub(memory.since).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Counts = Counts {
        arrived: 0,
        waiting: 0,
        in_flight: 0,
        ended: 0,
        run: 0,
        handler_s: 0.0,
        paused: false,
        slots: 4,
        share: 1.0,
    };

    fn measure(gauge: &mut Gauge, now_ms: u64, counts: &[(&str, Counts)]) -> Load {
        let counts = counts.iter().map(|(name, it)| (Name::new(name).unwrap(), *it)).collect();
        gauge.measure(Duration::from_millis(now_ms), counts)
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6
    }

    #[test]
    fn what_arrives_and_waits_times_the_handler_by_the_slots() {
        let mut gauge = Gauge::default();
        measure(&mut gauge, 0, &[("a", ONE)]);
        let later = Counts { arrived: 2_000, waiting: 1_000, run: 1_000, handler_s: 5.0, ..ONE };
        let load = measure(&mut gauge, 2_000, &[("a", later)]);
        assert!(
            close(load.arrivals_per_s, 1_000.0) && load.waiting == 1_000 && close(load.handler_s, 0.005),
            "{load:?}"
        );
        assert!(close(load.need, (1_000.0 + 100.0) * 0.005 / 3.2), "{load:?}");
    }

    #[test]
    fn queues_add_up_and_a_paused_one_needs_nobody() {
        let busy = Counts { waiting: 640, run: 10, handler_s: 1.0, ..ONE };
        let mut gauge = Gauge::default();
        assert!(close(measure(&mut gauge, 0, &[("a", busy)]).need, 2.0));
        let slow = Counts { waiting: 32, run: 10, handler_s: 10.0, ..ONE };
        assert!(close(measure(&mut Gauge::default(), 0, &[("a", busy), ("b", slow)]).need, 3.0));
        let held_back = Counts { paused: true, ..busy };
        assert!(close(measure(&mut Gauge::default(), 0, &[("a", held_back), ("b", slow)]).need, 1.0));
        assert_eq!(measure(&mut Gauge::default(), 0, &[("a", held_back)]).need.to_bits(), 0);
    }

    #[test]
    fn machines_share_whole_workers() {
        // Three are needed: two thirds and one third of them.
        let it = Counts { waiting: 800, run: 10, handler_s: 1.0, ..ONE };
        let share = |share| measure(&mut Gauge::default(), 0, &[("a", Counts { share, ..it })]).need;
        assert!(close(share(1.0), 2.5) && close(share(2.0 / 3.0), 2.0) && close(share(1.0 / 3.0), 1.0));
    }

    #[test]
    fn a_handler_that_nobody_saw_the_end_of_takes_as_long_as_it_was_waited_for() {
        let mut gauge = Gauge::default();
        let stuck = Counts { waiting: 320, in_flight: 4, ..ONE };
        assert!(close(measure(&mut gauge, 0, &[("a", stuck)]).handler_s, 0.0));
        assert!(close(measure(&mut gauge, 3_000, &[("a", stuck)]).need, 32.0 * 3.0 / 3.2));
        let ended = Counts { ended: 4, run: 4, handler_s: 13.2, ..stuck };
        assert!(close(measure(&mut gauge, 3_300, &[("a", ended)]).handler_s, 3.3));
        // What waits while nobody works says nothing of the handler.
        let mut gauge = Gauge::default();
        let alone = Counts { waiting: 320, ..ONE };
        measure(&mut gauge, 0, &[("a", alone)]);
        assert!(close(measure(&mut gauge, 60_000, &[("a", alone)]).need, 0.0));
    }

    #[test]
    fn the_time_of_a_handler_is_remembered_while_nothing_is_run() {
        let mut gauge = Gauge::default();
        let ran = Counts { run: 10, handler_s: 5.0, ..ONE };
        measure(&mut gauge, 0, &[("a", ran)]);
        for second in 1..100 {
            measure(&mut gauge, second * 1_000, &[("a", ran)]);
        }
        assert!(close(measure(&mut gauge, 100_000, &[("a", Counts { waiting: 64, ..ran })]).need, 1.0));
    }

    #[test]
    fn a_change_is_seen_in_the_short_run_and_chance_is_not() {
        let mut gauge = Gauge::default();
        let at = |arrived| [("a", Counts { arrived, ..ONE })];
        for tenth in 0..=100 {
            measure(&mut gauge, tenth * 100, &at(tenth * 10));
        }
        // Ten too many in two seconds of two hundred.
        assert!(close(measure(&mut gauge, 12_000, &at(1_210)).arrivals_per_s, 101.0));
        // Nothing more for two seconds.
        assert!(close(measure(&mut gauge, 14_000, &at(1_210)).arrivals_per_s, 0.0));
        // A thousand at once.
        assert!(close(measure(&mut gauge, 14_500, &at(2_210)).arrivals_per_s, 400.0));
    }
}
