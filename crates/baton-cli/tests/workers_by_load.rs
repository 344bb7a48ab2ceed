//! The workers of `up` follow the load: they come with a burst, leave when it is over, and lose nothing.

mod sandbox;

use std::collections::BTreeMap;

use sandbox::{Sandbox, is_gone, until};
use serde_json::json;

const WORK: [&str; 8] = ["--queue", "messages", "--handler", "demo", "--demo-delay", "20ms", "--demo-fail", "0"];
const LIMITS: [&str; 6] = ["--concurrency", "4", "--min-workers", "1", "--max-workers", "3"];

/// How often each message was run, by the journal of all processes.
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
fn runs(sandbox: &Sandbox) -> BTreeMap<u64, u64> {
    let mut runs = BTreeMap::new();
    for line in std::fs::read_to_string(sandbox.dir.path().join("journal")).unwrap().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let ["run", first, len, _] = fields[..] {
            let first: u64 = first.parse().unwrap();
            (first..first + len.parse::<u64>().unwrap()).for_each(|id| *runs.entry(id).or_default() += 1);
        }
    }
    runs
}

#[test]
fn a_burst_brings_workers_up_to_the_limit_and_its_end_sends_them_away() {
    let sandbox = Sandbox::new();
    let mut up = sandbox.start(&[&["up", "--no-gateway", "--journal", "journal"][..], &WORK, &LIMITS].concat());
    until("one worker runs", || sandbox.nodes(None).len() == 2);
    let bodies: String = (0..8_000).map(|number| format!("{number}\n")).collect();
    sandbox.run_with(&["push", "messages", "-"], bodies.as_bytes()).expect(0);
    let mut pids = Vec::new();
    until("all workers that may come do", || {
        pids = sandbox.nodes(None);
        pids.len() == 4
    });
    until("everything is done", || sandbox.count("messages", "done") == 8_000);
    until("only one worker stays", || sandbox.nodes(None).len() == 2);
    let log = sandbox.log();
    assert!(log.contains(" starting ") && log.contains(" messages a second, "), "{log}");
    assert!(log.contains(", 1 left: the load asked for no more for 10 s "), "{log}");
    sandbox.run(&["stop"]).expect(0);
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    until("no process is left", || pids.iter().all(|pid| is_gone(*pid)));
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((&books["done"], &books["failed"], &books["balanced"]), (&json!(8_000), &json!(0), &json!(true)));
    let runs = runs(&sandbox);
    assert!(runs.len() == 8_000 && runs.values().all(|times| *times == 1), "each is run once: {}", runs.len());
}

#[test]
fn a_worker_that_keeps_crashing_is_started_again_after_longer_pauses() {
    let sandbox = Sandbox::new();
    let up = sandbox.start(&["up", "--no-gateway", "--workers", "1", "--handler", "noop", "--queue", "messages"]);
    for pause in ["1 s", "2 s"] {
        let mut worker = None;
        until("the worker runs", || {
            worker = sandbox.nodes(None).into_iter().find(|pid| *pid != up.pid() && !is_gone(*pid));
            worker.is_some()
        });
        let kill = std::process::Command::new("kill").args(["-9", &worker.unwrap().to_string()]).status();
        assert!(kill.unwrap().success());
        let told = format!("; it is started again in {pause}");
        until("the crash is told of", || sandbox.log().contains(&told));
    }
}

#[test]
fn numbers_of_workers_that_contradict_each_other_are_refused() {
    let sandbox = Sandbox::new();
    let refused = |flags: &[&str]| sandbox.run(&[&["up", "--demo"][..], flags].concat()).expect(2);
    let told = refused(&["--min-workers", "3", "--max-workers", "2"]);
    assert_eq!(
        told.one_line(),
        "baton: --min-workers 3 is more than --max-workers 2; give the larger number to --max-workers"
    );
    refused(&["--workers", "2", "--max-workers", "3"]);
    refused(&["--max-workers", "1025"]);
    refused(&["--store", "memory:", "--max-workers", "2"]).one_line();
    assert!(!sandbox.path().exists());
}
