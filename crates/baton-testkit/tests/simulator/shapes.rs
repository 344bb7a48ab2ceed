//! Small fleets, each of the shape that broke a rule once: the first words of a failing test say what is wrong.

use baton::Role;
use baton_testkit::sim::{
    self,
    topology::{FaultPlan, NodePlan, PushPlan, QueuePlan, SimFault, SourcePlan, Topology, Trouble},
    work::Work,
};

/// A fleet of these nodes and queues, with nothing to do.
fn fleet(nodes: Vec<NodePlan>, works: &[Work]) -> Topology {
    let queue =
        |(nth, work): (usize, &Work)| QueuePlan { name: format!("q{nth}"), work: *work, retries: 0, backoff_ms: 500 };
    Topology {
        seed: 7,
        length_ms: 60_000,
        nodes,
        queues: works.iter().enumerate().map(queue).collect(),
        sources: Vec::new(),
        pushes: Vec::new(),
        faults: Vec::new(),
    }
}

fn node(role: Role, works: &[(usize, usize)], offers: &[usize]) -> NodePlan {
    NodePlan {
        role,
        works: works.to_vec(),
        offers: offers.to_vec(),
        lease_ms: 1_000,
        heartbeat_ms: 200,
        max_queue_bytes: 64 << 20,
        starts_ms: 0,
    }
}

fn source(nth: usize, queue: usize, every_ms: u64) -> SourcePlan {
    SourcePlan { name: format!("s{nth}"), queue, every_ms, batch: 1, end: None, trouble: Trouble::None }
}

/// A message every so often.
fn singles(queue: usize, every_ms: u64) -> impl Iterator<Item = PushPlan> {
    (1..).map(move |nth| PushPlan { at_ms: nth * every_ms, queue, count: 1 }).take_while(|push| push.at_ms < 50_000)
}

#[track_caller]
fn keeps_every_rule(mut topology: Topology) {
    sim::quiet_panics();
    topology.pushes.sort_by_key(|push| push.at_ms);
    if let Err(failed) = sim::run_fleet(topology) {
        panic!("{failed}");
    }
}

#[test]
fn an_idle_queue_holds_up_no_other() {
    let mut topology = fleet(vec![node(Role::Auto, &[(0, 1), (1, 1)], &[])], &[Work::Sleeps { ms: 10 }, Work::Instant]);
    topology.pushes.push(PushPlan { at_ms: 1_000, queue: 0, count: 1_000 });
    keeps_every_rule(topology);
}

#[test]
fn thirty_idle_queues_cost_no_more_than_one() {
    let works: Vec<(usize, usize)> = (0..30).map(|queue| (queue, 8)).collect();
    keeps_every_rule(fleet(vec![node(Role::Auto, &works, &[])], &[Work::Instant; 30]));
}

#[test]
fn two_nodes_that_both_generate_work_too() {
    let nodes = vec![node(Role::Auto, &[(0, 8)], &[0]), node(Role::Auto, &[(0, 8)], &[1])];
    let mut topology = fleet(nodes, &[Work::Instant]);
    topology.sources = vec![source(0, 0, 500), source(1, 0, 700)];
    keeps_every_rule(topology);
}

#[test]
fn a_source_that_rests_keeps_nobody_from_working() {
    let nodes = vec![node(Role::Auto, &[(0, 8)], &[0]), node(Role::Worker, &[(1, 8)], &[])];
    let mut topology = fleet(nodes, &[Work::Instant; 2]);
    topology.sources = vec![source(0, 1, 86_400_000)];
    topology.pushes = singles(0, 3_000).collect();
    keeps_every_rule(topology);
}

#[test]
fn a_late_copy_of_a_claim_reaches_no_other_queue() {
    // Each queue is worked off with several claims at once, of which the last find nothing: other claims get their numbers.
    // Then the node is held up, messages arrive, and late copies of those claims find them.
    let works: Vec<(usize, usize)> = (0..6).map(|queue| (queue, 8)).collect();
    let mut topology = fleet(vec![node(Role::Auto, &works, &[])], &[Work::Instant; 6]);
    for start in (0..50_000).step_by(3_000) {
        let fault = |after, fault| FaultPlan { at_ms: start + after, fault };
        topology.faults.extend([
            fault(1_000, SimFault::Late { node: 0, ms: 1_900, per_mille: 900, delay: 900 }),
            fault(1_700, SimFault::Pause { node: 0, ms: 850 }),
        ]);
        let arrivals = (0..6).flat_map(|queue| (0..8).map(move |nth| (queue, 1_750 + 90 * nth)));
        let singles = arrivals.map(|(queue, after)| PushPlan { at_ms: start + after, queue, count: 1 });
        let bursts = (0..6).map(|queue| PushPlan { at_ms: start + 1_500 + 30 * queue as u64, queue, count: 300 });
        topology.pushes.extend(singles.chain(bursts));
    }
    keeps_every_rule(topology);
}

#[test]
fn what_is_claimed_ahead_goes_back_when_its_turn_does_not_come() {
    // Of a thousand messages ten take eight seconds: they fill the places of one node, and hold up what it claimed ahead.
    let nodes = vec![node(Role::Worker, &[(0, 4)], &[]), node(Role::Worker, &[(0, 4)], &[])];
    let mut topology = fleet(nodes, &[Work::Uneven { slow_ms: 8_000 }]);
    topology.pushes = vec![PushPlan { at_ms: 1_000, queue: 0, count: 1_500 }];
    keeps_every_rule(topology);
}

#[test]
fn a_node_that_finishes_its_work_leaves_its_sources_to_others() {
    let nodes = vec![node(Role::Auto, &[(0, 1)], &[0]), node(Role::Auto, &[(0, 1)], &[0])];
    let mut topology = fleet(nodes, &[Work::Sleeps { ms: 10_000 }]);
    topology.sources = vec![source(0, 0, 3_000)];
    let drain = |node, at_ms| FaultPlan { at_ms, fault: SimFault::Drain { node, back_after: Some(100) } };
    topology.faults = (0..2).map(|node| drain(node, 10_000 + 20_000 * node as u64)).collect();
    keeps_every_rule(topology);
}

#[test]
fn a_source_that_panics_is_opened_again() {
    let nodes = vec![node(Role::Auto, &[(0, 8)], &[0, 1]), node(Role::Auto, &[(0, 8)], &[0, 1])];
    let mut topology = fleet(nodes, &[Work::Instant]);
    topology.sources = vec![
        SourcePlan { trouble: Trouble::OpenPanics, ..source(0, 0, 900) },
        SourcePlan { trouble: Trouble::PullPanics, ..source(1, 0, 900) },
    ];
    topology.faults = (1..8)
        .map(|nth| FaultPlan {
            at_ms: nth * 6_000,
            fault: SimFault::Kill { node: nth as usize % 2, back_after: Some(1_500) },
        })
        .collect();
    keeps_every_rule(topology);
}
