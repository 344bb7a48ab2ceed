//! Children end with their node, whatever happens to the process that sees to it.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{path::Path, process::Command};

use sandbox::{Running, Sandbox, below, is_gone, until};

/// Starts a node with two children, which begin a process each that has left their group; all their ids.
fn node_with_children(sandbox: &Sandbox, path: &Path) -> (Running, Vec<u32>) {
    sandbox.write("stubborn", "trap '' TERM HUP\n/usr/bin/setsid /bin/sleep 1000 &\n/bin/sleep 1000\n");
    let exec = format!("/bin/sh {}", sandbox.dir.path().join("stubborn").display());
    let mut command = sandbox.command(&["node", "--queue", "q", "--exec-once", &exec, "--concurrency", "2"]);
    sandbox.run(&["push", "q", "1", "2"]).expect(0);
    let node = sandbox.start_by(command.env("PATH", path));
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let children = || {
        below(node.pid()).into_iter().filter(|pid| ["/bin/sh", "/bin/sleep"].iter().any(|it| name(pid).starts_with(it)))
    };
    until("they run", || children().filter(|pid| name(pid).starts_with("/bin/sleep")).count() == 4);
    let children = children().collect();
    (node, children)
}

/// The guardian of a node: it shares the list of groups.
fn guardian(node: &Running) -> Option<u32> {
    let shares = |pid: &u32| {
        let list = std::fs::read_link(format!("/proc/{pid}/fd/2")).unwrap_or_default();
        list.to_string_lossy().contains("memfd:baton-children")
    };
    below(node.pid()).into_iter().find(shares)
}

fn signal(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

fn none_is_left(children: &[u32]) {
    until("none of them runs", || children.iter().all(|pid| is_gone(*pid)));
}

#[test]
fn nothing_outlives_a_killed_node_that_finds_no_programs() {
    let sandbox = Sandbox::new();
    let nowhere = sandbox.dir.path().join("nowhere");
    let (mut node, children) = node_with_children(&sandbox, &nowhere);
    node.kill();
    none_is_left(&children);
}

#[test]
fn a_guardian_that_is_killed_is_replaced_at_once() {
    let sandbox = Sandbox::new();
    let (mut node, children) = node_with_children(&sandbox, Path::new("/usr/bin:/bin"));
    for _ in 0..3 {
        let mut killed = 0;
        until("a guardian watches", || guardian(&node).inspect(|pid| killed = *pid).is_some());
        signal("-9", killed);
        until("another watches", || guardian(&node).is_some_and(|pid| pid != killed));
    }
    node.kill();
    none_is_left(&children);
}

#[test]
fn a_guardian_ignores_what_a_terminal_and_an_administrator_send_to_all() {
    let sandbox = Sandbox::new();
    let (mut node, children) = node_with_children(&sandbox, Path::new("/usr/bin:/bin"));
    let watches = guardian(&node).unwrap();
    // HUP, INT, QUIT and TERM are ignored or caught.
    let harmless = (1_u64 << 0) | (1 << 1) | (1 << 2) | (1 << 14);
    let set = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    until("it is deaf", || {
        let status = std::fs::read_to_string(format!("/proc/{watches}/status")).unwrap();
        (set(&status, "SigIgn:") | set(&status, "SigCgt:")) & harmless == harmless
    });
    // Nor does it look like the node to somebody who kills that by its name.
    let comm = std::fs::read_to_string(format!("/proc/{watches}/comm")).unwrap();
    let command = std::fs::read_to_string(format!("/proc/{watches}/cmdline")).unwrap();
    assert!(!comm.contains("baton") && !command.contains("baton"), "{comm} {command}");
    ["-HUP", "-INT", "-QUIT", "-TERM"].into_iter().for_each(|it| signal(it, watches));
    node.kill();
    none_is_left(&children);
}
