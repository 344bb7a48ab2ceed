//! A fleet on one machine: crashed workers are replaced, and nobody outlives it.

mod sandbox;
mod terminal;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Running, Sandbox, is_gone, until};
use serde_json::json;
use terminal::on_a_terminal;

/// An `up` with two workers that has begun to work.
fn up(sandbox: &Sandbox) -> Running {
    let up = sandbox.start(&[
        "up",
        "--demo",
        "--listen",
        "0",
        "--workers",
        "2",
        "--interval",
        "5ms",
        "--demo-delay",
        "0..5ms",
    ]);
    until("all run", || sandbox.nodes(None).len() == 3 && sandbox.count("demo", "done") > 0);
    up
}

#[test]
fn kill_ends_up_and_its_workers() {
    let sandbox = Sandbox::new();
    let mut up = up(&sandbox);
    until("figures are measured", || {
        let figures = sandbox.run(&["stats", "--json", "--seconds", "0.5"]).expect(0).json();
        let wait = &figures["latency_ms"];
        figures["done_per_s"].as_f64() > Some(0.0)
            && wait["p50"].is_f64()
            && wait["p99"].as_f64() >= wait["p50"].as_f64()
    });
    let pids = sandbox.nodes(None);
    assert!(pids.contains(&up.pid()));
    let killed = sandbox.run(&["stop", "--json"]).expect(0).json();
    assert_eq!((&killed["stopped"], &killed["survivors"]), (&json!(3), &json!([])));
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    until("no process is left", || pids.iter().all(|pid| is_gone(*pid)));
    assert!(sandbox.log().contains(" asked to stop: it finishes what runs "), "{}", sandbox.log());
    assert!(sandbox.nodes(None).is_empty());
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!(books["in_flight"], 0);
    let none = format!("no node of fleet baton is running in {}\n", sandbox.url());
    assert_eq!(sandbox.run(&["stop"]).expect(0).out, none);
}

#[test]
fn crashed_workers_are_replaced_and_none_outlives_up() {
    let sandbox = Sandbox::new();
    let mut up = up(&sandbox);
    let workers = || sandbox.nodes(None).into_iter().filter(|pid| *pid != up.pid()).collect::<Vec<_>>();
    let before = workers();
    assert!(
        std::process::Command::new("kill").args(["-9", &before[0].to_string()]).status().is_ok_and(|it| it.success())
    );
    until("another worker takes its place", || workers().len() == 2 && !workers().contains(&before[0]));
    let mut pids = workers();
    pids.push(up.pid());
    up.kill();
    until("the workers notice and leave", || pids.iter().all(|pid| is_gone(*pid)));
    sandbox.run(&["audit", "--deep"]).expect(0);
    // What the killed node left behind is not waited for longer than its lease.
    sandbox.run(&["stop"]).expect(0);
    assert!(sandbox.nodes(None).is_empty());
}

#[test]
fn ctrl_c_in_a_terminal_stops_each_process_once() {
    let sandbox = Sandbox::new();
    let mut up = up(&sandbox);
    let pids = sandbox.nodes(None);
    up.signal_group("-INT");
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    until("no process is left", || pids.iter().all(|pid| is_gone(*pid)));
    assert!(!sandbox.log().contains("stopping at once"), "{}", sandbox.log());
}

#[test]
fn what_does_not_end_in_time_is_handed_back() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    let slow = ["--handler", "demo", "--demo-delay", "10m", "--demo-fail", "0"];
    let mut node = sandbox.start(&[&["node", "--role", "worker"][..], &slow].concat());
    until("it runs", || sandbox.count("messages", "in_flight") == 1);
    let killed = sandbox.run(&["stop", "--grace", "300ms", "--json"]).expect(0).json();
    assert_eq!(
        killed,
        json!({
            "fleet": "baton", "store": format!("sqlite:{}", sandbox.path().display()), "stopped": 1, "died": [],
            "at_once": true, "survivors": [], "unanswered": []
        })
    );
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    assert_eq!((sandbox.count("messages", "ready"), sandbox.count("messages", "in_flight")), (1, 0));
}

#[test]
fn a_node_that_does_not_answer_has_not_stopped_while_its_process_lives() {
    let sandbox = Sandbox::new();
    // A lease that is longer than it takes to look and to ask.
    let node = ["node", "--handler", "noop", "--lease", "5s"];
    let (mut silent, mut other) = (sandbox.start(&node), sandbox.start(&node));
    until("it stands still and holds up nobody who writes, and both are there", || {
        silent.signal("-CONT");
        until("both have joined", || sandbox.nodes(None).len() == 2);
        silent.signal("-STOP");
        sandbox.run(&["--wait", "1s", "resume", "messages"]).code == Some(0)
    });
    let killed = sandbox.run(&["stop"]).expect(1);
    assert_eq!(killed.out, "stopped 1 node\n");
    let (order, told) = killed.err.trim_end().split_once('\n').unwrap();
    assert!(order.starts_with("baton: stopping 2 nodes of fleet baton in sqlite:"), "{order}");
    assert!(told.starts_with("baton: 1 node did not stop: "), "{told}");
    assert!(told.ends_with(&format!("/{}; end it by hand", silent.pid())), "{told}");
    assert_eq!(other.wait(), Some(0), "{}", sandbox.log());
    // When it goes on it joins anew, and hears of the order.
    silent.signal("-CONT");
    assert_eq!(silent.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_node_that_had_died_before_is_not_counted_as_stopped() {
    let sandbox = Sandbox::new();
    // Its lease is longer than it takes to ask.
    let mut node = sandbox.start(&["node", "--handler", "noop", "--lease", "3s"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    node.kill();
    let mut lives = sandbox.start(&["node", "--handler", "noop", "--lease", "3s"]);
    until("it has joined too", || sandbox.nodes(None).contains(&lives.pid()));
    let killed = sandbox.run(&["stop"]).expect(0);
    assert!(killed.out.starts_with("stopped 1 node"), "{}", killed.out);
    assert!(killed.err.contains(&format!("/{}", lives.pid())), "{}", killed.err);
    assert!(!killed.err.contains(&format!("/{}", node.pid())), "{}", killed.err);
    assert_eq!(lives.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_dead_node_alone_is_no_node_that_was_stopped() {
    let sandbox = Sandbox::new();
    let mut node = sandbox.start(&["node", "--handler", "noop", "--lease", "3s"]);
    until("it has joined", || sandbox.nodes(None).len() == 1);
    node.kill();
    let killed = sandbox.run(&["stop", "--now"]).expect(0);
    assert!(
        killed.out.starts_with("no node of fleet baton is running in ") && killed.out.contains("; 1 had died before: "),
        "{}",
        killed.out
    );
    assert!(
        killed.out.ends_with(&format!("/{}\n", node.pid())) && killed.err.is_empty(),
        "{}{}",
        killed.out,
        killed.err
    );
    let none = format!("no node of fleet baton is running in {}\n", sandbox.url());
    assert_eq!(sandbox.run(&["stop"]).expect(0).out, none);
}

#[test]
fn a_node_of_another_folder_is_named_with_it_before_it_is_stopped() {
    let sandbox = Sandbox::new();
    let other = sandbox.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = sandbox.command(&["node", "--handler", "noop"]);
    let mut node = sandbox.start_by(command.current_dir(&other));
    until("it has joined", || sandbox.nodes(None).len() == 1);
    // Without a terminal nobody is asked.
    let ran = sandbox.run(&["stop"]).expect(0);
    let place = format!("/{} (in {})\n", node.pid(), other.canonicalize().unwrap().display());
    assert!(
        ran.err.starts_with("baton: stopping 1 node of fleet baton in sqlite:") && ran.err.ends_with(&place),
        "{}",
        ran.err
    );
    assert_eq!(ran.out, "stopped 1 node\n");
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_person_at_a_terminal_is_asked_before_a_node_of_another_folder_is_stopped() {
    let sandbox = Sandbox::new();
    let other = sandbox.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let answered = |answer: &str, arguments: &[&str]| on_a_terminal(&sandbox.command(arguments), answer, &[]);
    let mut command = sandbox.command(&["node", "--handler", "noop"]);
    let mut node = sandbox.start_by(command.current_dir(&other));
    until("it has joined", || sandbox.nodes(None).len() == 1);
    let refused = answered("n\n", &["stop"]).expect(1);
    assert!(refused.out.contains("It does not work in this folder. Stop it? [y/N] "), "{}", refused.out);
    assert!(refused.out.contains("would stop 1 node of fleet") && !refused.out.contains("stopping"), "{}", refused.out);
    assert!(refused.out.contains("not confirmed: no node was stopped"), "{}", refused.out);
    assert_eq!(sandbox.nodes(None), [node.pid()]);
    let stopped = answered("y\n", &["stop"]).expect(0);
    assert!(stopped.out.contains("stopped 1 node"), "{}", stopped.out);
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());

    // Of this folder, or with the flag, nobody is asked.
    for (folder, arguments) in [(sandbox.dir.path(), &["stop"][..]), (&other, &["stop", "--yes"])] {
        let mut command = sandbox.command(&["node", "--handler", "noop"]);
        let mut node = sandbox.start_by(command.current_dir(folder));
        until("it has joined", || sandbox.nodes(None).len() == 1);
        let stopped = answered("n\n", arguments).expect(0);
        assert!(!stopped.out.contains("[y/N]") && stopped.out.contains("stopped 1 node"), "{}", stopped.out);
        assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    }
}

#[test]
fn a_fleet_that_is_not_there_is_an_error_of_every_command_about_it() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        sandbox.run(&["push", "q", "1"]).expect(0);
        for command in ["status", "audit", "errors", "stats", "stop", "pause q", "resume q"] {
            let named = |more: &[&str]| {
                let words = [&["--fleet", "batton"], &command.split(' ').collect::<Vec<_>>()[..], more].concat();
                sandbox.run(&words).expect(1)
            };
            let ran = named(&[]);
            assert!(ran.one_line().starts_with("baton: there is no fleet batton in "), "{command}: {}", ran.err);
            assert_eq!(ran.out, "", "{command}");
            let is_a_file = ran.err.contains(" in sqlite:");
            let near = ran.err.ends_with(" (there are: baton); did you mean --fleet baton?\n");
            assert_eq!(near, is_a_file, "{command}: {}", ran.err);
            if command != "errors" {
                let ran = named(&["--json"]);
                assert_eq!(
                    (&ran.json()["exists"], &ran.json()["fleet"]),
                    (&json!(false), &json!("batton")),
                    "{command}"
                );
            }
        }
        sandbox.run(&["--fleet", "batton", "pause", "q", "--create"]).expect(0);
        sandbox.run(&["--fleet", "batton", "status"]).expect(0);
    }
}

#[test]
fn that_the_store_keeps_nothing_is_said_once_for_all_workers() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let mut up = up(&sandbox);
    assert_eq!(sandbox.log().matches(" keeps nothing on disk ").count(), 1, "{}", sandbox.log());
    sandbox.run(&["stop"]).expect(0);
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
}
