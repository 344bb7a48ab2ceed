//! Subset sums over the fleet from the command line: the same matches as alone, though a worker is killed in the middle.

mod sandbox;

use std::{
    io::{BufRead as _, BufReader},
    time::Instant,
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Running, Sandbox, until};
use serde_json::Value;

fn workers(sandbox: &Sandbox, count: usize) -> Vec<Running> {
    let node = ["node", "--queue", "subset-sum", "--handler", "subset-sum", "--concurrency", "2"];
    let workers = (0..count).map(|_| sandbox.start(&node)).collect();
    until("they work", || sandbox.nodes(None).len() == count);
    workers
}

/// Fifty integers of which 27 are in no match: quick to search, with over a hundred thousand matches for the sum 138.
fn fifty() -> String {
    let numbers: Vec<String> = (1..=23).chain(std::iter::repeat_n(1_000_000, 27)).map(|n| n.to_string()).collect();
    format!("[{}]", numbers.join(","))
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

#[test]
fn four_workers_of_which_one_is_killed_print_what_one_process_prints() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let numbers = fifty();
    let alone = sandbox.run(&["subset-sum", "--sum", "138", &numbers]).expect(0);
    let mut nodes = workers(&sandbox, 4);
    let begun = Instant::now();
    let mut search = sandbox.command(&["subset-sum", "--sum", "138", "--mode", "fleet", &numbers]).spawn().unwrap();
    let mut lines = BufReader::new(search.stdout.take().unwrap()).lines();
    let mut printed = vec![lines.next().unwrap().unwrap()];
    let first = begun.elapsed();
    // Nobody reads on, so what tells matches has to wait: there are twice as many as the events of a call may take.
    assert!(sandbox.count("subset-sum", "in_flight") > 0 && search.try_wait().unwrap().is_none());
    nodes.remove(0).kill();
    printed.extend(lines.map(Result::unwrap));
    let (last, ended) = (begun.elapsed(), search.wait_with_output().unwrap());
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    println!("the first of {} matches after {first:?}, the last after {last:?}", printed.len());
    assert_eq!(sorted(printed), sorted(alone.out.lines().map(str::to_owned).collect()));
    sandbox.run(&["audit", "--deep"]).expect(0);
}

#[test]
fn limits_counts_and_refusals_are_as_in_every_mode() {
    let sandbox = Sandbox::new();
    let _nodes = workers(&sandbox, 1);
    let run = |flags: &[&str]| sandbox.run(&[&["subset-sum", "--mode", "fleet"][..], flags].concat());
    let limited = run(&["--sum", "138", "--limit", "7", &fifty()]).expect(0);
    assert_eq!(limited.out.lines().count(), 7);
    assert!(limited.err.contains("perhaps more"), "{}", limited.err);
    let counted = run(&["--sum", "138", "--count-only", "--json", &fifty()]).expect(0);
    let alone = sandbox.run(&["subset-sum", "--sum", "138", "--count-only", "--json", &fifty()]).expect(0);
    assert_eq!(counted.out, alone.out);
    let none = run(&["--sum", "1000", "[1,2,3]"]).expect(0);
    assert!(none.out.is_empty() && none.err.contains("0 matches in"), "{}", none.err);
    let many = format!("[{}]", vec!["0"; 40].join(","));
    assert!(run(&["--sum", "0", &many]).expect(1).one_line().contains("matches would take about"));
}

#[test]
fn ctrl_c_cancels_the_search_and_a_missing_worker_is_told() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["subset-sum", "--mode", "fleet", "--sum", "138", &fifty()]);
    let mut search = sandbox.start_by(&mut command);
    until("it says that nobody works", || sandbox.log().contains("no node works for queue subset-sum"));
    search.signal("-INT");
    assert_eq!(search.wait(), Some(1), "{}", sandbox.log());
    assert!(sandbox.log().contains("interrupted after 0 matches"), "{}", sandbox.log());
    // What was cancelled is not begun by who comes later.
    let _nodes = workers(&sandbox, 1);
    until("it is cancelled", || {
        let audit: Value = sandbox.run(&["audit", "--json"]).expect(0).json();
        audit["cancelled"] == 1 && audit["done"] == 0
    });
}
