//! What audit, status and destroy say of a fleet with live nodes, dead nodes and damaged books.

mod sandbox;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::json;

#[test]
fn books_that_do_not_add_up_are_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    sandbox.run(&["push", "good", "1"]).expect(0);
    let damage = |sql: &str| {
        let file = rusqlite::Connection::open(sandbox.path()).unwrap();
        assert_eq!(file.execute(sql, []).unwrap(), 1);
    };
    damage("UPDATE queues SET ready = 1 WHERE name = 'messages'");
    let ran = sandbox.run(&["audit", "--json"]).expect(4);
    assert_eq!(ran.json()["balanced"], false);
    assert_eq!(ran.json()["unbalanced"], json!(["queue messages: 2 of 3 pushed are not accounted for"]));
    assert!(sandbox.run(&["audit"]).expect(4).out.contains("NOT balanced: queue messages: 2 of 3"));
    sandbox.run(&["audit", "good"]).expect(0);
    // Books that add up over data that is not there: only counting finds it.
    damage("UPDATE queues SET ready = 2, done = 1 WHERE name = 'messages'");
    sandbox.run(&["audit"]).expect(0);
    let deep = sandbox.run(&["audit", "--deep", "--json"]).expect(4).json();
    assert_eq!(deep["unbalanced"], json!(["queue messages: ready is 2 in the books, 3 in the data"]));
    assert_eq!(deep["held_ms"], 0);
}

#[test]
fn messages_without_a_body_are_named_buried_and_not_requeued() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1", "2"]).expect(0);
    let file = rusqlite::Connection::open(sandbox.path()).unwrap();
    assert_eq!(file.execute("DELETE FROM parcels", []).unwrap(), 1);
    drop(file);
    sandbox.run(&["audit"]).expect(0);
    let fault = "queue messages: the bodies of 2 messages are missing, from messages/1 on";
    assert_eq!(sandbox.run(&["audit", "--deep", "--json"]).expect(4).json()["unbalanced"], json!([fault]));
    sandbox.run(&["push", "messages", "3"]).expect(0);
    sandbox.run(&["node", "--queue", "messages", "--handler", "noop", "--until-done"]).expect(3);
    sandbox.run(&["audit", "--deep"]).expect(0);
    let errors = sandbox.run(&["errors", "--json"]).expect(0).out;
    let errors: Vec<serde_json::Value> = errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0]["body"], json!(null));
    assert_eq!(errors[0]["error"], json!("its body is missing from the store"));
    let requeued = sandbox.run(&["errors", "--requeue"]).expect(0);
    assert!(requeued.err.contains("2 messages cannot be requeued: the body is missing"), "{}", requeued.err);
    assert_eq!(sandbox.run(&["audit", "--json"]).expect(0).json()["failed"], 2);
}

#[test]
fn of_several_destroys_at_once_one_says_what_it_removed() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        sandbox.run_with(&["push", "messages", "-"], "1\n".repeat(1_000).as_bytes()).expect(0);
        let destroy = || sandbox.command(&["destroy", "--yes", "--json"]).spawn().unwrap();
        let destroys: Vec<_> = (0..4).map(|_| destroy()).collect();
        let said = destroys.into_iter().map(|destroy| {
            let output = destroy.wait_with_output().unwrap();
            let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            // One that came late found no fleet.
            let removed = said["destroyed"].as_bool().unwrap_or(false);
            assert_eq!(output.status.success(), said["exists"] != json!(false), "{said}");
            (removed, said["messages"].as_u64().unwrap_or(0))
        });
        let mut said: Vec<(bool, u64)> = said.collect();
        said.sort_unstable();
        assert_eq!(said, [(false, 0), (false, 0), (false, 0), (true, 1_000)]);
        sandbox.run(&["--fleet", "other", "push", "messages", "1"]).expect(0);
        let late = sandbox.run(&["destroy", "--yes", "--json"]).expect(1);
        assert!(late.one_line().contains("there is no fleet baton in "), "{}", late.err);
        assert_eq!(late.json()["exists"], json!(false));
    }
}

#[test]
fn status_shows_live_nodes_and_destroy_is_refused_while_they_live() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let node = runtime.block_on(sandbox.node("messages"));
    let status = sandbox.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["nodes"][0]["session"], node.id().to_string());
    assert_eq!(status["nodes"][0]["pid"], std::process::id());
    assert_eq!((&status["nodes"][0]["role"], &status["nodes"][0]["queues"]), (&json!("worker"), &json!(["messages"])));
    assert!(status["nodes"][0]["age_ms"].is_u64() && status["nodes"][0]["last_beat_ms"].is_u64());
    assert_eq!((&status["queues"][0]["name"], &status["queues"][0]["ready"]), (&json!("messages"), &json!(1)));
    sandbox.run(&["push", "lonely", "1"]).expect(0);
    let status = sandbox.run(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["queues"][0]["nodes"], &status["queues"][1]["nodes"]), (&json!(0), &json!(1)));
    let shown = sandbox.run(&["status"]).expect(0).out;
    let unattended: Vec<&str> = shown.lines().filter(|line| line.ends_with(" 0  no node works for it")).collect();
    assert!(unattended.len() == 1 && unattended[0].starts_with("lonely "), "{shown}");
    assert_eq!((&status["queues"][0]["paused"], &status["sources"]), (&json!(false), &json!([])));
    let refused = sandbox.run(&["destroy", "--yes"]).expect(1);
    assert!(refused.one_line().contains(&format!("/{}; stop the fleet first", std::process::id())), "{}", refused.err);
    assert_eq!(sandbox.pushed(), 2);

    // The node dies without leaving: it is no longer shown, and destroy waits for its lease.
    drop(node);
    runtime.shutdown_background();
    until("the dead node is not shown", || sandbox.run(&["status", "--json"]).expect(0).json()["nodes"] == json!([]));
    let destroyed = sandbox.run(&["destroy", "--yes", "--json"]).expect(0).json();
    assert_eq!((&destroyed["destroyed"], &destroyed["messages"]), (&json!(true), &json!(2)));
    assert_eq!(sandbox.run(&["status", "--json"]).expect(1).json()["exists"], false);
}
