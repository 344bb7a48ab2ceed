//! Pushing: ids, keys, reruns, and a push killed midway.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod sandbox;

use std::fmt::Write as _;

use sandbox::{Sandbox, until};

fn lines(count: u64) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "{{\"n\":{n},\"pad\":\"0123456789012345678901234567890123456789\"}}").unwrap();
    }
    text
}

#[test]
fn bodies_from_everywhere_get_consecutive_ids() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.dir.path().join("in"), "3\n\n4").unwrap();
    let ran = sandbox.run_with(&["push", "-1.5", "-", "\"x\"", "--file", "in", "--json"], b"1\n \n2\r\n").expect(0);
    assert_eq!(ran.json()["pushed"], 6);
    assert_eq!((&ran.json()["first_id"], &ran.json()["last_id"]), (&1.into(), &6.into()));
    assert_eq!(ran.err, "");
    let none = sandbox.run(&["push", "-", "--json"]).expect(0).json();
    assert_eq!((&none["pushed"], &none["first_id"]), (&0.into(), &serde_json::Value::Null));
}

#[test]
fn a_rerun_under_a_key_skips_what_was_taken() {
    let sandbox = Sandbox::new();
    let push = |input: &str| sandbox.run_with(&["push", "-", "--key", "k", "--json"], input.as_bytes());
    let first = push(&lines(3000)).expect(0).json();
    assert_eq!((&first["pushed"], &first["duplicates"]), (&3000.into(), &0.into()));
    let again = push(&lines(3000)).expect(0).json();
    assert_eq!((&again["pushed"], &again["duplicates"]), (&0.into(), &3000.into()));
    // Blank lines and line ends do not count.
    let longer = push(&lines(4000).replace('\n', "\r\n\n")).expect(0).json();
    assert_eq!(
        (&longer["pushed"], &longer["duplicates"], &longer["first_id"]),
        (&1000.into(), &3000.into(), &3001.into())
    );
    let other = push(&lines(5000).replacen("\"n\":7,", "\"n\":8,", 1)).expect(1);
    assert!(other.one_line().contains("another key"), "{}", other.err);
    let shorter = push(&lines(10)).expect(1);
    assert!(shorter.one_line().contains("has 10 lines, but 4000"), "{}", shorter.err);
    assert_eq!(sandbox.pushed(), 4000);
}

#[test]
fn a_push_killed_midway_is_completed_by_a_rerun() {
    let sandbox = Sandbox::new();
    let count = 300_000;
    std::fs::write(sandbox.dir.path().join("in"), lines(count)).unwrap();
    let arguments = ["push", "--file", "in", "--key", "k"];
    let mut killed = 0;
    for _ in 0..3 {
        let before = if sandbox.path().exists() { stored(&sandbox) } else { 0 };
        let mut child = sandbox.command(&arguments).spawn().unwrap();
        until("some lines are stored, or all", || {
            child.try_wait().unwrap().is_some() || (sandbox.path().exists() && stored(&sandbox) > before)
        });
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
    }
    println!("killed {killed} of 3 before the end");
    sandbox.run(&arguments).expect(0);
    assert_eq!(sandbox.pushed(), count);
}

fn stored(sandbox: &Sandbox) -> u64 {
    let ran = sandbox.run(&["audit", "--json"]);
    if ran.out.is_empty() { 0 } else { ran.json()["pushed"].as_u64().unwrap() }
}

#[test]
fn a_full_queue_is_waited_for_and_then_reported() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.dir.path().join("in"), lines(20_000)).unwrap();
    for extra in [&[][..], &["--key", "k"][..]] {
        let arguments =
            [&["push", "--file", "in", "--max-backlog", "200KiB", "--wait", "0.2", "--queue", "q"], extra].concat();
        let before = if sandbox.path().exists() { sandbox.pushed() } else { 0 };
        let ran = sandbox.run(&arguments).expect(1);
        let stored = sandbox.pushed() - before;
        let told = if stored == 0 { "nothing was stored".to_owned() } else { format!("{stored} lines are stored") };
        let last = ran.err.lines().last().unwrap();
        assert!(last.contains("queue q is full") && last.contains(&told), "{}", ran.err);
    }
}

#[test]
fn lines_of_a_slow_producer_are_not_kept_back() {
    use std::io::Write as _;
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(&["push", "-"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"1\n").unwrap();
    until("the first line is stored", || sandbox.path().exists() && stored(&sandbox) == 1);
    stdin.write_all(b"2\n").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.pushed(), 2);
}
