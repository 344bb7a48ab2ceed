//! Whole traces of load against the gauge and the decision, with a fleet in place of the store: messages, workers that
//! take a moment to come, and time that is counted, not waited for.

use std::{collections::BTreeMap, time::Duration};

use super::{
    LOOK_EVERY,
    decision::{Decider, Hand, Limits, UNUSED_FOR},
    gauge::{Counts, Gauge},
};
use crate::{message::Name, store::session::Environment};

/// A step of the fleet's time.
const STEP: Duration = Duration::from_millis(50);
/// How long a worker takes from its start to its first claim.
const COMES_AFTER: Duration = Duration::from_millis(400);

/// A fleet of which one machine's workers are the spawner's, beside a node that works too.
struct Fleet {
    limits: Limits,
    slots: usize,
    handler_s: f64,
    now: Duration,
    gauge: Gauge,
    decider: Decider,
    workers: Vec<Worker>,
    started: u64,
    arrived: f64,
    waiting: f64,
    run: f64,
    /// Whose turn it is to be given a message.
    turn: usize,
    /// When how many were started, or left.
    changes: Vec<(Duration, isize)>,
}

struct Worker {
    number: u64,
    since: Duration,
    given: bool,
}

impl Fleet {
    fn new(limits: (usize, usize), slots: usize, handler_s: f64) -> Self {
        let limits = Limits { min: limits.0, max: limits.1 };
        Self {
            limits,
            slots,
            handler_s,
            now: Duration::ZERO,
            gauge: Gauge::default(),
            decider: Decider::new(limits),
            workers: Vec::new(),
            started: 0,
            arrived: 0.0,
            waiting: 0.0,
            run: 0.0,
            turn: 0,
            changes: Vec::new(),
        }
    }

    /// Lets time pass with so many messages in each step.
    fn pass(&mut self, time: Duration, mut arrive: impl FnMut(Duration) -> f64) {
        let end = self.now + time;
        while self.now < end {
            if self.now.as_nanos().is_multiple_of(LOOK_EVERY.as_nanos()) {
                self.look();
            }
            let more = arrive(self.now);
            self.arrived += more;
            self.waiting += more;
            self.work();
            self.now += STEP;
        }
    }

    fn work(&mut self) {
        let now = self.now;
        let mut there: Vec<&mut Worker> =
            self.workers.iter_mut().filter(|worker| now >= worker.since + COMES_AFTER).collect();
        let capacity = (there.len() + 1) as f64 * self.slots as f64 / self.handler_s * STEP.as_secs_f64();
        let run = self.waiting.min(capacity);
        (self.waiting, self.run) = (self.waiting - run, self.run + run);
        // In turns, the node beside the workers among them.
        for _ in 0..(run.floor() as usize).min(there.len() + 1) {
            self.turn = (self.turn + 1) % (there.len() + 1);
            if let Some(worker) = there.get_mut(self.turn) {
                worker.given = true;
            }
        }
    }

    fn look(&mut self) {
        let counts = Counts {
            arrived: self.arrived as u64,
            waiting: self.waiting as u64,
            run: self.run as u64,
            ended: self.run as u64,
            handler_s: self.run.floor() * self.handler_s,
            slots: self.slots,
            share: 1.0,
            ..Counts::default()
        };
        let load = self.gauge.measure(self.now, BTreeMap::from([(Name::new("messages").unwrap(), counts)]));
        let hands: Vec<Hand> = self.workers.iter().map(|worker| self.hand(worker)).collect();
        let decision = self.decider.decide(self.now, load.need, &hands, 0);
        let leave = [decision.surplus, decision.unused].concat();
        self.workers.retain(|worker| !leave.contains(&worker.number));
        for _ in 0..decision.start {
            self.workers.push(Worker { number: self.started, since: self.now, given: false });
            self.started += 1;
        }
        for change in [-(leave.len() as isize), decision.start as isize] {
            if change != 0 {
                self.changes.push((self.now, change));
            }
        }
        let Limits { min, max } = self.limits;
        assert!((min..=max).contains(&self.workers.len()), "{} workers", self.workers.len());
    }

    fn hand(&self, worker: &Worker) -> Hand {
        let there = self.now.checked_sub(worker.since + COMES_AFTER);
        Hand { number: worker.number, runs: true, unused_for: there.filter(|_| !worker.given) }
    }

    /// What changed after that time.
    fn changes_since(&self, time: Duration) -> Vec<(Duration, isize)> {
        self.changes.iter().filter(|(at, _)| *at > time).copied().collect()
    }

    /// Per second, as a number in each step.
    fn steadily(per_s: f64) -> impl FnMut(Duration) -> f64 {
        move |_| per_s * STEP.as_secs_f64()
    }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_burst_is_met_within_two_seconds_and_its_workers_leave_behind_it() {
    let mut fleet = Fleet::new((1, 8), 4, 0.005);
    fleet.pass(s(60), |_| 0.0);
    assert_eq!(fleet.changes, [(Duration::ZERO, 1)], "the lower limit, and nothing else while nothing comes");
    let mut burst = Some(100_000.0);
    fleet.pass(s(2), |_| burst.take().unwrap_or(0.0));
    assert_eq!(fleet.workers.len(), 8, "{:?}", fleet.changes);
    // What waits is worked off in ten seconds by those that are wanted; here there may not be as many.
    let come = fleet.now;
    while fleet.waiting >= 1.0 {
        fleet.pass(STEP, |_| 0.0);
    }
    fleet.pass(s(12), |_| 0.0);
    assert_eq!(fleet.workers.len(), 1, "{:?}", fleet.changes);
    assert!(fleet.changes_since(come).iter().all(|(_, change)| *change < 0), "{:?}", fleet.changes);
}

#[test]
fn a_step_is_followed_up_and_down_once() {
    // Four slots of 10 ms, four fifths of them at work: 320 a second each.
    let mut fleet = Fleet::new((1, 8), 4, 0.01);
    fleet.pass(s(30), Fleet::steadily(100.0));
    fleet.pass(s(5), Fleet::steadily(1_500.0));
    assert!(fleet.workers.len() >= 5, "{:?}", fleet.changes);
    fleet.pass(s(60), Fleet::steadily(1_500.0));
    assert_eq!(fleet.workers.len(), 5, "no more than it takes: {:?}", fleet.changes);
    let settled = fleet.now;
    fleet.pass(s(600), Fleet::steadily(1_500.0));
    assert_eq!(fleet.changes_since(settled), []);
    fleet.pass(s(15), Fleet::steadily(100.0));
    assert_eq!(fleet.workers.len(), 1, "{:?}", fleet.changes);
}

#[test]
fn a_ramp_is_climbed_one_by_one_and_never_back() {
    let mut fleet = Fleet::new((1, 8), 4, 0.01);
    fleet.pass(s(200), |now| now.as_secs_f64() * 10.0 * STEP.as_secs_f64());
    assert!((6..=8).contains(&fleet.workers.len()), "{:?}", fleet.changes);
    assert!(fleet.changes.iter().all(|(_, change)| *change > 0), "{:?}", fleet.changes);
    assert!(fleet.waiting < 500.0, "{}", fleet.waiting);
    let top = fleet.now;
    fleet.pass(s(200), |now| (400.0 - now.as_secs_f64()).max(0.0) * 10.0 * STEP.as_secs_f64());
    assert_eq!(fleet.workers.len(), 1, "{:?}", fleet.changes);
    assert!(fleet.changes_since(top + s(20)).iter().all(|(_, change)| *change < 0), "{:?}", fleet.changes);
}

#[test]
fn teeth_shorter_than_the_patience_move_nothing_longer_ones_once_each() {
    let saw = |period: f64| move |now: Duration| 2_000.0 * (now.as_secs_f64() % period / period) * STEP.as_secs_f64();
    let mut fleet = Fleet::new((1, 8), 4, 0.01);
    fleet.pass(s(40), saw(8.0));
    let settled = fleet.now;
    fleet.pass(s(400), saw(8.0));
    assert_eq!(fleet.changes_since(settled), []);
    let mut fleet = Fleet::new((1, 8), 4, 0.01);
    fleet.pass(s(600), saw(60.0));
    // Ten teeth, each climbed in at most seven steps, and down in a few.
    assert!(fleet.changes.len() <= 10 * 12, "{:?}", fleet.changes);
}

#[test]
fn a_steady_load_with_noise_does_not_flap() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let random = Environment::simulated(seed);
    for round in 0..10 {
        // Anywhere between one worker and seven, edges among them.
        let need = 1.0 + random.chance() * 6.0;
        let per_s = need * 3.2 / 0.01;
        let mut fleet = Fleet::new((1, 8), 4, 0.01);
        // Chance as arrivals have it: a sum of many that come or do not.
        let mut noisy =
            |_| (0..100).filter(|_| random.chance() < per_s * STEP.as_secs_f64() / 100.0 / 2.0).count() as f64 * 2.0;
        fleet.pass(s(60), &mut noisy);
        let settled = fleet.now;
        fleet.pass(s(600), &mut noisy);
        let changes = fleet.changes_since(settled);
        // On the very edge one more may come, and stays as long as it is needed now and then.
        assert!(changes.len() <= 2, "seed {seed}, round {round}: {need} workers' load: {changes:?}");
    }
}

#[test]
fn spares_that_come_too_late_leave_soon_and_are_not_called_again_for_the_same() {
    let mut fleet = Fleet::new((1, 8), 4, 0.1);
    // Every three seconds a handful that the node and its one worker have done when the spares come.
    fleet.pass(s(30), |now| if now.as_millis() % 3_000 == 0 { 8.0 } else { 0.0 });
    let mut burst = Some(40.0);
    let begun = fleet.now;
    fleet.pass(s(25), |_| burst.take().unwrap_or(0.0));
    let starts = fleet.changes_since(begun).iter().filter(|(_, change)| *change > 0).count();
    assert!(starts <= 1, "{:?}", fleet.changes);
    assert!(fleet.workers.len() == 1 && UNUSED_FOR < s(2), "{:?}", fleet.changes);
}
