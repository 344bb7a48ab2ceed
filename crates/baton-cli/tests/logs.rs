//! The log of nodes: its forms, its levels, failures that are told once, output of children, workers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;
mod terminal;

use std::process::Command;

use sandbox::{Ran, Running, Sandbox, until};
use serde_json::Value;
use terminal::on_a_terminal;

/// A node that runs what waits in the queue `receipt`.
const NODE: [&str; 6] = ["node", "--queue", "receipt", "--until-done", "--exec-once", "false"];

fn push(sandbox: &Sandbox, bodies: usize) {
    let lines: String = (1..=bodies).map(|body| format!("{body}\n")).collect();
    sandbox.run_with(&["push", "receipt", "-"], lines.as_bytes()).expect(0);
}

/// A command that finds programs.
fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::of(command(sandbox, arguments).output().unwrap())
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Running {
    sandbox.start_by(&mut command(sandbox, arguments))
}

fn on_terminal(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let variables = [&[("TZ", "UTC")], variables].concat();
    on_a_terminal(&sandbox.command(arguments), "", &variables).expect(3).out
}

/// The lines of a log in JSON.
fn objects(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["event"] == event).collect()
}

#[test]
fn a_terminal_gets_short_lines_and_colours_unless_somebody_wants_none() {
    let sandbox = Sandbox::new();
    let failed = "receipt/1 failed for good: failed with exit code 1; see `baton errors receipt`";
    push(&sandbox, 1);
    let coloured = on_terminal(&sandbox, &NODE, &[]);
    assert!(coloured.contains(&format!("\x1b[33m{failed}\x1b[0m")), "{coloured:?}");
    sandbox.run(&["errors", "receipt", "--requeue"]).expect(0);
    let plain = on_terminal(&sandbox, &NODE, &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\x1b') && !plain.contains("fleet=") && !plain.contains("session="), "{plain:?}");
    let line = plain.lines().find(|line| line.contains(failed)).unwrap();
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = line.chars().take(9).map(digits).collect();
    assert!(shape == "00:00:00 " && line.trim_end().len() == 9 + failed.len(), "{line:?}");
    sandbox.run(&["errors", "receipt", "--requeue"]).expect(0);
    let whole = on_terminal(&sandbox, &[&NODE[..], &["-v"]].concat(), &[("NO_COLOR", "1")]);
    assert!(whole.contains("Z warn receipt/1 failed") && whole.contains(" fleet=baton session="), "{whole:?}");
}

#[test]
fn a_log_in_json_has_an_object_a_line_with_stable_fields() {
    let sandbox = Sandbox::new();
    push(&sandbox, 1);
    sandbox.write("fail", "echo 'warning: low' >&2; echo \"Error: \\\"no\\\" $BATON_ATTEMPT\" >&2; exit 1");
    let exec = format!("sh {}", sandbox.dir.path().join("fail").display());
    let flags = ["--log", "json", "--retries", "1", "--backoff", "1ms"];
    let node = [&["node", "--queue", "receipt", "--until-done", "--exec-once", &exec], &flags[..]].concat();
    let records = objects(&run(&sandbox, &node).expect(3).err);
    assert!(records.iter().all(|it| it["time"].as_str().unwrap().ends_with('Z') && it["fleet"] == "baton"));
    let failed = of_event(&records, "message-failed");
    assert_eq!(failed.len(), 2, "a line an attempt: {records:#?}");
    for (nth, (record, level)) in failed.iter().zip(["info", "warn"]).enumerate() {
        let attempt = nth + 1;
        assert_eq!(
            (&record["queue"], &record["id"], &record["attempt"]),
            (&"receipt".into(), &1.into(), &attempt.into())
        );
        assert_eq!(record["level"], level);
        assert!(record["error"].as_str().unwrap().contains("warning: low\nError: "), "{record}");
        assert_eq!(record["retry_after_ms"].is_u64(), nth == 0, "{record}");
    }
    let output = of_event(&records, "output");
    assert_eq!(output.len(), 4, "{records:#?}");
    assert!(output.iter().all(|it| it["queue"] == "receipt" && it["id"] == 1), "{output:#?}");
    assert_eq!(output[0]["message"], "warning: low");
}

#[test]
fn equal_failures_are_summed_up() {
    let sandbox = Sandbox::new();
    push(&sandbox, 500);
    let node = ["node", "--queue", "receipt", "--handler", "demo", "--demo-fail", "1", "--demo-delay", "0ms"];
    let ran = sandbox.run(&[&node[..], &["--until-done"]].concat()).expect(3);
    let failed = ran.err.lines().filter(|line| line.contains("failed for good: ")).count();
    let number =
        |line: &str| -> Option<u64> { line.split_once("… and ")?.1.split(' ').next()?.replace(',', "").parse().ok() };
    let left_out: u64 = ran.err.lines().filter_map(number).sum();
    let sums = ran.err.matches("more like it").count();
    assert!(sums >= 1 && failed < 60, "{}", ran.err);
    assert_eq!(failed as u64 - sums as u64 + left_out, 500, "{}", ran.err);
}

#[test]
fn a_level_and_a_queue_of_its_own_level_are_chosen_by_a_variable() {
    let sandbox = Sandbox::new();
    push(&sandbox, 1);
    let with = |level: &str| Ran::of(command(&sandbox, &NODE).env("BATON_LOG", level).output().unwrap());
    let refused = with("loud").expect(2);
    assert!(refused.one_line().contains("BATON_LOG: \"loud\" is no level"), "{}", refused.err);
    let warn = with("warn").expect(3).err;
    assert!(warn.contains(" warn receipt/1 failed for good") && !warn.contains("joined as"), "{warn}");
    sandbox.run(&["errors", "receipt", "--requeue"]).expect(0);
    let other = with("info,receipt=error").expect(3).err;
    assert!(!other.contains("receipt/1") && other.contains(" info joined as"), "{other}");
    let both = sandbox.run(&[&NODE[..], &["-q", "-v"]].concat()).expect(2);
    assert!(both.one_line().contains("cannot be used with"), "{}", both.err);
}

/// A child answers, and says something later: that is no message's.
const CHATTY: &str = r#"
import json, sys, threading
def late():
    print("idle", file=sys.stderr, flush=True)
for line in sys.stdin:
    task = json.loads(line)
    print("at work", file=sys.stderr, flush=True)
    print(json.dumps({"id": task["id"], "event": "end"}), flush=True)
    threading.Timer(0.3, late).start()
"#;

#[test]
fn output_of_children_carries_queue_and_id_or_the_number_of_the_child() {
    let sandbox = Sandbox::new();
    push(&sandbox, 1);
    sandbox.write("chatty.py", CHATTY);
    let mut node = start(&sandbox, &["node", "--queue", "receipt", "--exec", "python3 chatty.py"]);
    until("it was idle", || sandbox.log().contains("idle"));
    assert!(sandbox.log().contains(" receipt/1 | at work "), "{}", sandbox.log());
    assert!(sandbox.log().contains(" receipt child 1 | idle "), "{}", sandbox.log());
    node.signal("-INT");
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn lines_of_workers_carry_their_number_and_no_session() {
    let sandbox = Sandbox::new();
    push(&sandbox, 20);
    let work = ["--handler", "demo", "--demo-fail", "1", "--demo-delay", "0ms", "--workers", "2", "--no-gateway"];
    let mut up = start(&sandbox, &[&["up", "--queue", "receipt"][..], &work].concat());
    let joined = |worker: u32| sandbox.log().contains(&format!(" info worker {worker}: joined as "));
    until("both workers have joined", || joined(1) && joined(2));
    up.signal("-INT");
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    let log = sandbox.log();
    let theirs: Vec<&str> =
        log.lines().filter(|line| line.contains(" info worker ") || line.contains(" warn worker ")).collect();
    assert!(theirs.len() >= 4 && theirs.iter().all(|line| !line.contains("session=")), "{log}");
    assert!(log.lines().all(|line| line.starts_with("20")), "every line is whole: {log}");
}

#[test]
fn a_node_that_died_is_one_line_on_one_of_the_others() {
    let sandbox = Sandbox::new();
    push(&sandbox, 3);
    let work = ["node", "--queue", "receipt", "--lease", "1s"];
    let mut dying = start(&sandbox, &[&work[..], &["--exec-once", "sleep 600", "--concurrency", "3"]].concat());
    until("it has begun", || sandbox.count("receipt", "in_flight") == 3);
    let mut others: Vec<_> = (0..2).map(|_| start(&sandbox, &[&work[..], &["--exec-once", "true"]].concat())).collect();
    until("both have joined", || sandbox.log().matches(" joined as ").count() == 3);
    dying.kill();
    let died = || {
        let log = sandbox.log();
        log.lines()
            .filter(|line| line.contains(&format!("/{} died: silent for ", dying.pid())))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    until("it is reported", || !died().is_empty());
    assert!(
        died()[0].contains(" warn node ") && died()[0].contains("; 3 messages go back to `receipt` "),
        "{:?}",
        died()
    );
    for other in &others {
        other.signal("-INT");
    }
    assert!(others.iter_mut().all(|other| other.wait() == Some(0)), "{}", sandbox.log());
    assert_eq!(died().len(), 1, "{}", sandbox.log());
}
