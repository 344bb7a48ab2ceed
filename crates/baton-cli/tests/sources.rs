//! Sources as a person meets them: named by their path, listed, redefined and removed.

#![expect(clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod sandbox;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::{Value, json};

fn sources(sandbox: &Sandbox) -> Vec<Value> {
    let listed = sandbox.run(&["source", "list", "--json"]).expect(0).json();
    listed["sources"].as_array().cloned().unwrap_or_default()
}

#[test]
fn files_of_one_name_are_two_sources_and_one_file_is_one_wherever_it_is_named_from() {
    let sandbox = Sandbox::new();
    for folder in ["a", "b"] {
        assert!(std::fs::create_dir(sandbox.dir.path().join(folder)).is_ok());
        sandbox.write(&format!("{folder}/urls.txt"), "1\n2\n");
    }
    let absolute = sandbox.dir.path().join("a/urls.txt").display().to_string();
    for path in ["a/urls.txt", "b/urls.txt", "b/../a/urls.txt", &absolute] {
        sandbox.run(&["node", "-q", "--handler", "noop", "--lines", path, "--until-done"]).expect(0);
    }
    assert_eq!(sandbox.pushed(), 4, "each file was read once");
    let names: Vec<String> = sources(&sandbox).iter().filter_map(|it| Some(it["name"].as_str()?.to_owned())).collect();
    assert_eq!(names.len(), 2);
    for name in &names {
        let hash = name.strip_prefix("lines:urls.txt:").unwrap_or_default();
        assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
}

fn a_source_is_listed_and_removed_once_nobody_offers_it(sandbox: &Sandbox) {
    sandbox.run(&["push", "messages", "0"]).expect(0);
    assert_eq!(sources(sandbox), [] as [Value; 0]);
    assert_eq!(sandbox.run(&["source", "list"]).expect(0).out, "no sources\n");
    let node = ["node", "--handler", "noop", "--interval", "5ms", "--source", "beats", "--queue", "q"];
    let mut running = sandbox.start(&node);
    until("it generates", || sandbox.count("q", "done") > 3);
    let listed = &sources(sandbox)[0];
    assert_eq!((&listed["name"], &listed["queue"], &listed["ended"]), (&json!("beats"), &json!("q"), &json!(false)));
    assert!(listed["holder"].is_string() && listed["epoch"].as_u64() > Some(0), "{listed}");
    assert!(sandbox.run(&["source", "list"]).expect(0).out.contains(&format!("/{}", running.pid())));
    let refused = sandbox.run(&["source", "remove", "beats"]).expect(1);
    let by = format!("/{} offers source beats; stop it first", running.pid());
    assert!(refused.one_line().ends_with(&by), "{}", refused.err);
    let unknown = sandbox.run(&["source", "remove", "beat"]).expect(1);
    assert!(unknown.one_line().contains("no source beat in this fleet (there are: beats)"), "{}", unknown.err);

    // Killed without a word: its lease is waited for.
    running.kill();
    let pushed = sandbox.pushed();
    assert_eq!(sandbox.run(&["source", "remove", "beats", "--json"]).expect(0).json(), json!({"removed": "beats"}));
    assert_eq!((sources(sandbox).len(), sandbox.pushed()), (0, pushed));
}

#[test]
fn a_source_is_listed_and_removed_on_sqlite() {
    a_source_is_listed_and_removed_once_nobody_offers_it(&Sandbox::new());
}

#[test]
fn a_source_is_listed_and_removed_on_redis() {
    let server = RedisServer::start(Persistence::None);
    a_source_is_listed_and_removed_once_nobody_offers_it(&Sandbox::on(&server));
}

#[test]
fn a_cron_is_redefined_by_its_next_start_also_after_a_kill() {
    let sandbox = Sandbox::new();
    let node = |expression: &'static str, queue: &'static str| {
        ["node", "--handler", "noop", "--cron", expression, "--queue", queue, "--source", "calendar"]
    };
    let mut old = sandbox.start(&node("0 3 * * *", "night"));
    until("it generates", || sandbox.nodes(Some("generator")) == [old.pid()]);
    until("it says when it is due", || sandbox.log().contains(" '0 3 * * *' is next due at "));
    assert!(sandbox.log().contains("T03:00:00.000Z fleet="), "{}", sandbox.log());
    let refused = sandbox.run(&[&node("* * * * * *", "day")[..], &["-q"]].concat()).expect(1);
    let why = format!("/{} offers source calendar with another definition", old.pid());
    assert!(refused.one_line().contains(&why), "{}", refused.err);
    old.kill();
    let mut new = sandbox.start(&node("* * * * * *", "day"));
    until("the new one is due", || sandbox.count("day", "done") > 0);
    assert_eq!(sources(&sandbox)[0]["queue"], "day");
    new.signal("-TERM");
    assert_eq!(new.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn two_crons_without_a_name_are_two_sources() {
    let sandbox = Sandbox::new();
    let node = |expression| ["node", "--handler", "noop", "--cron", expression];
    let mut running = [sandbox.start(&node("0 3 * * *")), sandbox.start(&node("0  4 * * *"))];
    until("both generate", || sandbox.nodes(Some("generator")).len() == 2);
    let names: Vec<String> = sources(&sandbox).iter().filter_map(|it| Some(it["name"].as_str()?.to_owned())).collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("cron:")), "{names:?}");
    sandbox.run(&["stop"]).expect(0);
    assert!(running.iter_mut().all(|node| node.wait() == Some(0)), "{}", sandbox.log());
}

#[test]
fn a_source_that_failed_for_good_is_shown_with_why() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "0"]).expect(0);
    let from = ["node", "--handler", "noop", "--lines-from", "echo one; exit 7", "--share-queue"];
    let mut node = sandbox.start(&from);
    until("it is told", || sources(&sandbox).first().is_some_and(|it| it["failed"].is_string()));
    assert_eq!(sources(&sandbox)[0]["ended"], false);
    for command in [&["status"][..], &["source", "list"]] {
        let shown = sandbox.run(command).expect(0).out;
        assert!(shown.contains("none") && shown.contains("failed: ") && shown.contains('7'), "{shown}");
    }
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_node_says_who_it_is_and_that_another_one_runs_its_source() {
    let sandbox = Sandbox::new();
    let node = |interval| ["node", "--handler", "noop", "--interval", interval];
    let mut first = sandbox.start(&node("1h"));
    until("it generates", || sandbox.nodes(Some("generator")) == [first.pid()]);
    assert!(!sandbox.log().contains(" runs source "), "{}", sandbox.log());
    let mut second = sandbox.start(&node("1ms"));
    let runs = format!("/{} runs source ", first.pid());
    let next = " with settings of its own; this node takes over when it leaves fleet=";
    until("it is told", || sandbox.log().lines().any(|line| line.contains(&runs) && line.contains(next)));
    let joined =
        |pid: u32| sandbox.log().lines().any(|line| line.contains(" joined as ") && line.contains(&format!("/{pid} ")));
    assert!(joined(first.pid()) && joined(second.pid()), "{}", sandbox.log());
    first.signal("-TERM");
    assert_eq!(first.wait(), Some(0), "{}", sandbox.log());
    until("the other one is next", || sandbox.nodes(Some("generator")) == [second.pid()]);
    second.signal("-TERM");
    assert_eq!(second.wait(), Some(0), "{}", sandbox.log());
}
