//! A fleet on Redis through pauses and outages: it goes on by itself, and the numbering continues.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

mod sandbox;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::Value;

fn baton(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(arguments).env_clear().env("BATON_STORE", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn json(url: &str, arguments: &[&str]) -> Value {
    serde_json::from_slice(&baton(url, arguments).output().unwrap().stdout).unwrap()
}

fn start_nodes(url: &str) -> Vec<Child> {
    let node = || baton(url, &["node", "-q", "--interval", "20ms", "--handler", "noop"]).spawn().unwrap();
    (0..3).map(|_| node()).collect()
}

fn signal(nodes: &[Child], name: &str) {
    for node in nodes {
        let sent = Command::new("kill").args([name, &node.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

/// Waits until messages are pushed and done again, and says how long that took.
fn goes_on(url: &str, after: &str) {
    // A fleet that no node has joined yet has no books.
    let counts = || {
        let books = json(url, &["audit", "--json"]);
        (books["pushed"].as_u64().unwrap_or(0), books["done"].as_u64().unwrap_or(0))
    };
    let (begun, (pushed, done)) = (Instant::now(), counts());
    loop {
        let now = counts();
        if now.0 > pushed + 2 && now.1 > done + 2 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the fleet stands still after {after}: {now:?}");
    }
    println!("goes on {:?} after {after}", begun.elapsed());
}

#[test]
fn the_fleet_goes_on_after_pauses_and_restarts_of_its_store() {
    let mut server = RedisServer::start(Persistence::AofAlways);
    let url = server.url();
    let mut nodes = start_nodes(&url);
    goes_on(&url, "the start");

    signal(&nodes, "-STOP");
    // The pause itself is what is tested: twice the lease.
    std::thread::sleep(Duration::from_secs(2));
    signal(&nodes, "-CONT");
    goes_on(&url, "a pause of all nodes");

    server.kill();
    // So is the outage.
    std::thread::sleep(Duration::from_secs(10));
    server.restart();
    goes_on(&url, "Redis was away for ten seconds");

    server.kill();
    server.restart();
    goes_on(&url, "Redis was restarted");

    let before = json(&url, &["audit", "--json"])["pushed"].as_u64().unwrap();
    for node in &mut nodes {
        node.kill().unwrap();
        node.wait().unwrap();
    }
    let mut nodes = start_nodes(&url);
    goes_on(&url, "all nodes were killed and others started");
    assert!(json(&url, &["audit", "--json"])["pushed"].as_u64().unwrap() > before, "the numbering continues");

    assert!(baton(&url, &["stop"]).status().unwrap().success());
    for node in &mut nodes {
        assert!(node.wait().unwrap().success());
    }
    let books = json(&url, &["audit", "--deep", "--json"]);
    assert_eq!(books["balanced"], true);
    // Each tick is one position of the source, and each has one id.
    let status = json(&url, &["status", "--json"]);
    assert_eq!(status["sources"][0]["cursor"].as_str().unwrap(), books["pushed"].to_string());
}

#[test]
fn a_node_that_is_to_stop_waits_for_its_store_but_not_for_ever() {
    let mut server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let work = "/bin/sh -c 'touch begun; until [ -e end ]; do sleep 0.05; done'";
    let mut node = sandbox.start(&["node", "--queue", "q", "--exec-once", work]);
    sandbox.run(&["push", "q", "1"]).expect(0);
    until("it is at work", || sandbox.path().with_file_name("begun").exists());
    server.kill();
    node.signal("-TERM");
    sandbox.write("end", "");
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    assert!(sandbox.log().contains("left without notice"), "{}", sandbox.log());
}

#[test]
fn a_server_that_may_evict_is_warned_of_and_ends_nothing() {
    let server = RedisServer::start(Persistence::None);
    let order = |words: &str| {
        let mut command = redis::cmd("CONFIG");
        command.arg("SET").arg("maxmemory-policy").arg(words);
        command.exec(&mut redis::Client::open(server.url()).unwrap().get_connection().unwrap()).unwrap();
    };
    let cut = || {
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut connection).unwrap();
    };
    let sandbox = Sandbox::on(&server);
    let up = ["up", "--no-gateway", "--queue", "q", "--handler", "noop", "--interval", "10ms", "--workers", "1"];
    let mut up = sandbox.start(&up);
    until("it works", || sandbox.count("q", "done") > 5);
    order("allkeys-lru");
    let warning = "may drop stored messages (maxmemory-policy allkeys-lru): nothing new is stored until that is mended; \
                   run `CONFIG SET maxmemory-policy noeviction` there";
    until("it is told", || sandbox.log().contains(warning));
    let nodes = sandbox.nodes(None);
    cut();
    let status = sandbox.run(&["status", "--json"]).expect(0);
    assert!(status.err.contains(warning), "{}", status.err);
    for looking in [&["errors"][..], &["audit"], &["stats", "--json"]] {
        sandbox.run(looking).expect(0);
    }
    let pushed = sandbox.run(&["push", "q", "1", "--wait", "300ms"]).expect(1);
    let why = "set it to noeviction there (`CONFIG SET maxmemory-policy noeviction`)";
    assert!(pushed.err.contains("the store takes nothing new") && pushed.err.contains(why), "{}", pushed.err);
    let fresh = sandbox.run(&["--fleet", "new", "node", "--handler", "noop", "--queue", "q", "-q"]).expect(5);
    assert!(fresh.err.contains(why), "{}", fresh.err);
    // One that is missed is replaced, and the new one finds the server as it is.
    let worker = nodes.iter().find(|pid| **pid != up.pid()).unwrap();
    assert!(Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    until("another works", || {
        let now = sandbox.nodes(None);
        now.len() == 2 && !now.contains(worker)
    });
    order("noeviction");
    let done = sandbox.count("q", "done");
    until("it goes on", || sandbox.count("q", "done") > done + 5);
    assert!(sandbox.log().contains("drops nothing any more"), "{}", sandbox.log());
    // By this process, and by the worker that was started meanwhile.
    assert_eq!(sandbox.log().matches(warning).count(), 2, "{}", sandbox.log());
    up.signal("-TERM");
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
}
