//! A store's file under a second name: whoever uses it by that one is refused before anything is changed.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]
#![cfg(target_os = "linux")]

mod sandbox;

use std::{fs, path::Path};

use sandbox::{Sandbox, until};

/// The names in a folder that begin so.
fn names(folder: &Path, begin: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().flatten().map(|it| it.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(begin)).collect()
}

/// A sandbox with a store of one message and a second name for it.
fn with_second_name() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "0"]).expect(0);
    fs::hard_link(sandbox.path(), sandbox.dir.path().join("second.db")).unwrap();
    sandbox
}

#[test]
fn a_file_that_a_node_has_open_is_refused_by_any_other_name() {
    let sandbox = with_second_name();
    let mut node = sandbox.start(&["node", "--handler", "noop", "--queue", "other"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    let who = format!("by another name in process {} (baton", node.pid());
    for command in [
        &["push", "messages", "77"][..],
        &["status"],
        &["audit"],
        &["node", "-q", "--handler", "noop"],
        &["backup", "b.db"],
    ] {
        let ran = sandbox.run(&[command, &["--store", "sqlite:second.db"]].concat()).expect(5);
        let line = ran.one_line();
        assert!(line.contains(&who) && line.contains("baton.db"), "{command:?}: {line}");
    }
    // Nor is it replaced there, nor brought back from there.
    sandbox.run(&["backup", "good.db"]).expect(0);
    let refused = sandbox.run(&["restore", "good.db", "--store", "sqlite:second.db"]).expect(1);
    assert!(refused.one_line().contains(&format!("open in process {}", node.pid())), "{}", refused.err);
    sandbox.run(&["restore", "second.db", "--store", "sqlite:fresh.db"]).expect(5);
    assert_eq!(names(sandbox.dir.path(), "second.db"), ["second.db"]);
    assert_eq!(names(sandbox.dir.path(), "fresh.db"), [""; 0]);
    assert!(names(sandbox.dir.path(), "baton.db").iter().all(|name| !name.contains("aside")));
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
    assert_eq!(sandbox.pushed(), 4);
    // Closed in order, it may be used by either.
    sandbox.run(&["push", "messages", "4", "--store", "sqlite:second.db"]).expect(0);
    assert_eq!(sandbox.pushed(), 5);
}

#[test]
fn a_file_whose_log_lies_beside_another_name_is_refused() {
    let sandbox = with_second_name();
    let mut node = sandbox.start(&["node", "--handler", "noop", "--queue", "other"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    node.kill();
    for command in
        [&["push", "messages", "77"][..], &["audit"], &["restore", "second.db", "--store", "sqlite:fresh.db"]]
    {
        let store: &[&str] = if command.contains(&"--store") { &[] } else { &["--store", "sqlite:second.db"] };
        let ran = sandbox.run(&[command, store].concat()).expect(5);
        assert!(ran.one_line().contains("second.db has 2 names (hard links)"), "{}", ran.err);
    }
    assert_eq!(names(sandbox.dir.path(), "second.db"), ["second.db"]);
    assert_eq!(sandbox.pushed(), 4);
}
