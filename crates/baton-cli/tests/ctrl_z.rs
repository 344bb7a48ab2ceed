//! Ctrl-Z: a terminal stops its foreground group, and all that `up` has started stops and goes on with it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::process::Command;

use sandbox::{Sandbox, until};

/// Whether a process stands still.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// The children of a process that run this program.
fn children(of: u32, program: &str) -> Vec<u32> {
    let found = Command::new("pgrep").args(["-P", &of.to_string(), "-f", program]).output().unwrap().stdout;
    String::from_utf8(found).unwrap().lines().map(|pid| pid.parse().unwrap()).collect()
}

fn stops_and_goes_on_as_a_whole(flags: &[&str], child: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("work.sh", "while read -r line; do echo '{\"event\":\"end\"}'; done\n");
    let up = ["up", "--queue", "q", "--interval", "20ms", "--no-gateway"];
    let up = sandbox.start(&[&up[..], flags].concat());
    until("it works", || sandbox.count("q", "done") > 5);
    let all = [vec![up.pid()], children(up.pid(), child)].concat();
    assert!(all.len() > 1, "{}", sandbox.log());
    up.signal("-TSTP");
    until("all stand still", || all.iter().all(|pid| is_stopped(*pid)));
    up.signal("-CONT");
    let before = sandbox.count("q", "done");
    until("it goes on", || sandbox.count("q", "done") > before + 5);
    assert!(!is_stopped(up.pid()));
}

#[test]
fn up_stops_and_goes_on_with_its_workers() {
    stops_and_goes_on_as_a_whole(&["--workers", "2", "--handler", "noop"], "leashed");
}

#[test]
fn up_stops_and_goes_on_with_the_children_of_its_queue() {
    stops_and_goes_on_as_a_whole(&["--exec", "/bin/sh work.sh"], "work.sh");
}
