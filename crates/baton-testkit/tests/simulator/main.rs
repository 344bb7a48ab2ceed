//! Fleets in simulated time that keep every rule: random ones, and the shapes that once broke one.
//!
//! `BATON_SEED` is the first seed and `BATON_FLEETS` how many follow: a failing seed and 1 replay it. `BATON_TELL=1`
//! prints everything that happens, `BATON_ALL=1` goes on after a failure.

mod shapes;

use baton_testkit::sim::{self, report::distribution, topology::Topology};

/// Seeds that once broke a rule, and what was wrong: a wake-up lost over a pause; batons kept by a node that finishes its
/// work; a source that panics when opened, twice; a lost wake-up that others' wake-ups made dearer; messages passed from
/// one busy node to the next; a place among those who wait, given up by a call that came too late; a source that failed
/// while its node was paused (the rule was wrong); a lost wake-up of a queue whose claim had just gone along with a read;
/// what late copies of claims have got, which only a beat tells of; a wake-up that went to a node which had just died too;
/// a source whose last push found room when all was worked off (the rule was wrong).
const PINNED: [u64; 12] = [143, 304, 19, 51, 55, 609, 801, 20_409, 20_917, 50, 21_515, 20_973];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs the fleets of these seeds and prints how they were distributed.
fn run_all(seeds: impl Iterator<Item = u64> + Clone) {
    sim::quiet_panics();
    let mut summaries = Vec::new();
    let mut failures = 0;
    for seed in seeds.clone() {
        match sim::run(seed) {
            Ok(summary) => summaries.push(summary),
            Err(failed) if number("BATON_ALL").is_some() => {
                failures += 1;
                println!("seed {seed}: {}", failed.rule);
            }
            Err(failed) => panic!("{failed}"),
        }
    }
    println!("{}", distribution(&summaries));
    assert_eq!(failures, 0, "fleets broke a rule");
}

/// The seeds of one of two halves, which run side by side.
fn half(odd: u64) -> impl Iterator<Item = u64> + Clone {
    let by_clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    // Without a number of fleets, as in a plain test run, they are the same every time.
    let fleets = number("BATON_FLEETS");
    let base = number("BATON_SEED").unwrap_or_else(|| fleets.map_or(1, |_| by_clock()));
    let count = fleets.unwrap_or(120);
    println!("fleets from BATON_SEED={base} BATON_FLEETS={count}, every second one");
    (base..base + count).filter(move |seed| seed % 2 == odd)
}

#[test]
fn random_fleets_keep_every_rule() {
    run_all(half(0));
}

#[test]
fn random_fleets_of_odd_seeds_keep_every_rule() {
    run_all(half(1));
}

#[test]
fn seeds_that_once_broke_a_rule_keep_all_rules() {
    run_all(PINNED.into_iter());
}

/// `BATON_NODES` and `BATON_SECONDS` make it as large and long as wanted: 1000 and 3600 are a thousand nodes for an hour.
#[test]
fn a_large_fleet_keeps_every_rule() {
    sim::quiet_panics();
    let (nodes, seconds) = (number("BATON_NODES").unwrap_or(60), number("BATON_SECONDS").unwrap_or(120));
    let seed = number("BATON_SEED").unwrap_or(1);
    match sim::run_fleet(Topology::large(seed, nodes, seconds * 1_000)) {
        Ok(summary) => println!("BATON_SEED={seed} BATON_NODES={nodes} BATON_SECONDS={seconds}: {summary:?}"),
        Err(failed) => panic!("{failed}"),
    }
}

#[test]
fn drawn_fleets_are_of_all_sizes_and_shapes() {
    let fleets: Vec<Topology> = (1..=400).map(Topology::draw).collect();
    let median = |of: fn(&Topology) -> usize| {
        let mut all: Vec<usize> = fleets.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    assert!(median(|it| it.nodes.len()) >= 5, "nodes");
    assert!(median(|it| it.nodes.iter().map(|node| node.works.len()).max().unwrap()) >= 5, "queues of a node");
    assert!(fleets.iter().all(|it| it.faults.len() >= 3 && it.length_ms >= 60_000));
    assert!(fleets.iter().any(|it| it.nodes.len() >= 45) && fleets.iter().any(|it| it.nodes.len() == 1));
    assert!(fleets.iter().any(|it| it.sources.len() == 10) && fleets.iter().any(|it| it.sources.is_empty()));
    assert!(fleets.iter().any(|it| it.nodes.iter().any(|node| node.works.len() == 30)));
}

#[test]
fn one_seed_gives_the_same_run_again() {
    sim::quiet_panics();
    for seed in 1..6 {
        let story = || sim::run(seed).map_or_else(|failed| failed.text, |summary| format!("{summary:?}"));
        assert_eq!(story(), story(), "seed {seed}");
    }
}
