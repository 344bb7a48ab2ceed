//! A paused queue hands nothing out until it is resumed; others go on.

mod sandbox;

use sandbox::{Sandbox, until};
use serde_json::json;

#[test]
fn nothing_is_handed_out_until_it_is_resumed() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    assert_eq!(sandbox.run(&["pause", "messages"]).expect(0).out, "queue messages is paused\n");
    let worker = ["node", "--role", "worker", "--handler", "noop", "--queue"];
    let _nodes = ["messages", "other"].map(|queue| sandbox.start(&[&worker[..], &[queue]].concat()));
    let age = || {
        let status = sandbox.status();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        let node = nodes.iter().find(|node| node["queues"] == json!(["messages"]));
        node.and_then(|node| node["age_ms"].as_u64())
    };
    until("the node has had its time to claim", || age() > Some(500));
    sandbox.run(&["push", "other", "4"]).expect(0);
    until("another queue goes on", || sandbox.count("other", "done") == 1);
    assert_eq!((sandbox.count("messages", "ready"), sandbox.count("messages", "done")), (3, 0));
    assert_eq!(sandbox.status()["queues"][0]["paused"], true);
    let resumed = sandbox.run(&["resume", "messages", "--json"]).expect(0).json();
    assert_eq!(resumed, json!({"queue": "messages", "paused": false}));
    until("it goes on", || sandbox.count("messages", "done") == 3);
    sandbox.run(&["stop", "--now"]).expect(0);
}

#[test]
fn a_queue_that_nobody_knows_is_not_paused_by_mistake() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    sandbox.run(&["push", "resize", "1"]).expect(0);
    for (command, next) in [
        ("pause", "; add --create to pause it ahead of its first message; did you mean messages?"),
        ("resume", "; did you mean messages?"),
    ] {
        let ran = sandbox.run(&[command, "mesages"]).expect(1);
        let line = ran.one_line();
        assert!(
            line.contains("no queue mesages") && line.contains("messages, resize") && line.contains(next),
            "{line}"
        );
    }
    assert_eq!(sandbox.status()["queues"].as_array().map(Vec::len), Some(2));
    sandbox.run(&["pause", "nightly", "--create"]).expect(0);
    sandbox.run(&["push", "nightly", "1"]).expect(0);
    assert_eq!(
        sandbox.status()["queues"][1],
        json!({
            "name": "nightly", "ready": 1, "delayed": 0, "in_flight": 0, "done": 0, "failed": 0, "paused": true,
            "nodes": 0
        })
    );
    sandbox.run(&["resume", "nightly"]).expect(0);
}

#[test]
fn who_waits_for_the_end_of_a_paused_queue_is_told_of_the_pause() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "work", "1"]).expect(0);
    sandbox.run(&["pause", "work"]).expect(0);
    let mut node = sandbox.start(&["node", "-q", "--handler", "noop", "--queue", "work", "--until-done"]);
    until("it is told", || sandbox.log() == "baton: queue work is paused; `baton resume work` lets it go on\n");
    sandbox.run(&["resume", "work"]).expect(0);
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    assert_eq!((sandbox.count("work", "done"), sandbox.log().lines().count()), (1, 1));
}

#[test]
fn who_waits_for_the_end_of_a_queue_that_nobody_works_for_is_told_so_once() {
    let sandbox = Sandbox::new();
    let generator = ["node", "-q", "--role", "generator", "--interval", "0", "--count", "3", "--queue", "work"];
    let mut node = sandbox.start(&[&generator[..], &["--until-done"]].concat());
    let line = "baton: no node works for queue work; start one with a handler for it\n";
    until("it is told", || sandbox.log() == line);
    sandbox.run(&["node", "-q", "--handler", "noop", "--queue", "work", "--until-done"]).expect(0);
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    assert_eq!(sandbox.log(), line);
}
