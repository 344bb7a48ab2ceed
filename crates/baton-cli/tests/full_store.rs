//! Commands on a Redis that is at its maxmemory, goes away or stands still: they say so, wait as long as they may, and end
//! with the first signal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::time::{Duration, Instant};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};

/// Bounds what the server may hold; 0 is no bound.
fn bound(server: &RedisServer, bytes: u64) {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(&mut connection).unwrap();
}

/// A server without room, on which the fleet was at home before.
fn full() -> (RedisServer, Sandbox) {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    sandbox.run(&["push", "other", "1"]).expect(0);
    bound(&server, 1);
    (server, sandbox)
}

/// Commands that store something and wait for what becomes of it.
const CALLS: [&[&str]; 2] = [&["call", "q", "1"], &["subset-sum", "--mode", "fleet", "--sum", "0", "[1,-1]"]];

#[test]
fn a_call_finds_no_room_says_why_and_ends_after_its_time_to_wait() {
    let (_server, sandbox) = full();
    for call in CALLS {
        let mut running = sandbox.start(&[call, &["--wait", "1"]].concat());
        assert_eq!(running.wait(), Some(1), "{call:?}: {}", sandbox.log());
        let log = sandbox.log();
        assert!(
            log.contains("waiting up to 1 s: ") && log.contains("the store takes nothing new: "),
            "{call:?}: {log}"
        );
        assert!(log.contains("maxmemory"), "{call:?}: {log}");
        sandbox.write("log", "");
    }
}

#[test]
fn the_first_signal_ends_a_call_that_waits_for_room() {
    let (_server, sandbox) = full();
    for (call, signal) in CALLS.into_iter().zip(["-TERM", "-INT"]) {
        let mut running = sandbox.start(&[call, &["--wait", "600"]].concat());
        until("it waits", || sandbox.log().contains("waiting up to"));
        let at = Instant::now();
        running.signal(signal);
        assert_eq!(running.wait(), Some(1), "{call:?}: {}", sandbox.log());
        assert!(at.elapsed() < Duration::from_secs(20), "{call:?}: {:?}", at.elapsed());
        assert!(sandbox.log().contains("interrupted"), "{call:?}: {}", sandbox.log());
        sandbox.write("log", "");
    }
}

#[test]
fn a_call_goes_on_when_there_is_room_again() {
    let (server, sandbox) = full();
    let mut call = sandbox.start(&["call", "q", "1", "--wait", "600"]);
    until("it waits", || sandbox.log().contains("waiting up to"));
    bound(&server, 0);
    let _node = sandbox.start(&["node", "--queue", "q", "--handler", "noop"]);
    assert_eq!(call.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_call_whose_store_goes_away_says_so_and_ends_after_its_time_to_wait() {
    let mut server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    for call in CALLS {
        let mut running = sandbox.start(&[call, &["--wait", "1"]].concat());
        until("nobody works on it", || sandbox.log().contains("no node works"));
        server.kill();
        assert_eq!(running.wait(), Some(5), "{call:?}: {}", sandbox.log());
        let log = sandbox.log();
        assert!(log.contains("waiting up to 1 s: ") && log.contains("is not known: "), "{call:?}: {log}");
        sandbox.write("log", "");
        server.restart();
    }
}

#[test]
fn the_first_signal_ends_what_waits_for_a_store_that_stands_still() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    for follower in [&["call", "q", "1"][..], &["errors", "--follow", "--remove"]] {
        server.stand_still(true);
        let mut running = sandbox.start(&[follower, &["--wait", "600"]].concat());
        until("it listens", || listens(running.pid()));
        let at = Instant::now();
        running.signal("-TERM");
        running.wait();
        server.stand_still(false);
        assert!(at.elapsed() < Duration::from_secs(6), "{follower:?}: {:?}", at.elapsed());
    }
}

/// Whether a process has a handler for SIGTERM.
fn listens(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
    caught.is_some_and(|mask| u64::from_str_radix(mask, 16).unwrap() >> 14 & 1 == 1)
}

#[test]
fn a_source_says_once_that_the_store_has_no_room_and_once_that_it_goes_on() {
    let (server, sandbox) = full();
    let flags = ["--interval", "20ms", "--count", "400", "--queue", "q", "--handler", "noop", "--until-done"];
    let mut node = sandbox.start(&[&["node"][..], &flags].concat());
    let count = |text: &str| sandbox.log().matches(text).count();
    until("it waits", || count("wait until it takes them again") == 1);
    assert!(sandbox.log().contains("maxmemory"), "{}", sandbox.log());
    bound(&server, 0);
    until("it goes on", || count("takes new messages again") == 1);
    assert_eq!(node.wait(), Some(0), "{}", sandbox.log());
    assert_eq!((count("wait until it takes"), count("takes new messages again")), (1, 1), "{}", sandbox.log());
}
