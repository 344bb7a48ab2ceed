//! Peers that are silent, slow, too many, or speak no HTTP.

mod scene;

use std::{
    net::Shutdown,
    time::{Duration, Instant},
};

use baton_gateway::{GatewayOptions, Limits};
use scene::{JSON, NDJSON, Scene, request, until};

fn quick(options: &mut GatewayOptions) {
    let short = Duration::from_millis(500);
    options.limits = Limits { head_time: short, body_time: short, ..Limits::default() };
}

#[test]
fn silent_connections_end_with_the_time_for_a_head() {
    let scene = Scene::with(quick);
    let mut silent: Vec<_> = (0..200).map(|_| scene.peer()).collect();
    let begun = Instant::now();
    for peer in &mut silent {
        peer.closes();
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // One that has asked before is silent too.
    let mut peer = scene.peer();
    peer.send(&request("GET", "/health", &[], b""));
    assert_eq!(peer.answer().status, 200);
    assert!(peer.closes() >= Duration::from_millis(300));
}

#[test]
fn a_head_that_comes_a_byte_at_a_time_is_not_waited_for() {
    let scene = Scene::with(quick);
    let mut peer = scene.peer();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        peer.try_send(b"x");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(peer.closes() < Duration::from_secs(1));
}

#[test]
fn a_body_that_does_not_come_is_told_so() {
    let scene = Scene::with(quick);
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[JSON, ("content-length", "10")], b"\"abc"));
    peer.answer().problem(408, "slow-body");
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[NDJSON, ("content-length", "100")], b"1\n2\n"));
    let problem = peer.answer().problem(408, "slow-body");
    assert_eq!(problem["stored"], 2);
    assert_eq!(scene.ready("q"), 2);
}

#[test]
fn heads_have_bounds() {
    let scene = Scene::new();
    let many: Vec<(String, String)> = (0..70).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let status = |bytes: &[u8]| {
        let mut peer = scene.peer();
        peer.try_send(bytes);
        peer.head().status
    };
    assert_eq!(status(&request("GET", "/health", &many, b"")), 431);
    assert_eq!(status(&request("GET", "/health", &[("x", &"y".repeat(20_000))], b"")), 431);
    assert_eq!(status(&request("GET", &format!("/{}", "y".repeat(20_000)), &[], b"")), 431);
    assert_eq!(status(&request("GET", "/health", &[("x", &"y".repeat(10_000))], b"")), 200);
    for nonsense in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: localhost\r\nbad header: x\r\n\r\n",
        b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n1",
        b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
    ] {
        assert_eq!(status(nonsense), 400, "{:?}", String::from_utf8_lossy(nonsense));
    }
    let packed =
        b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n";
    assert_eq!(status(packed), 501);
    assert_eq!(scene.ready("q"), 0);
}

#[test]
fn connections_over_the_bound_are_turned_away_and_others_are_answered() {
    let scene = Scene::with(|options| options.limits.connections = 5);
    let mut held = Vec::new();
    until("five are served", || {
        // Those that have just ended may still count.
        let mut peer = scene.peer();
        peer.try_send(&request("GET", "/health", &[], b""));
        if peer.answer().status == 200 {
            held.push(peer);
        }
        held.len() == 5
    });
    let mut further = scene.peer();
    further.answer().problem(503, "too-many-connections");
    drop(held);
    until("there is room again", || {
        let mut peer = scene.peer();
        peer.try_send(&request("GET", "/health", &[], b""));
        peer.head().status == 200
    });
}

#[test]
fn requests_of_one_connection_are_answered_in_their_order() {
    let scene = Scene::new();
    let mut peer = scene.peer();
    let both = [request("POST", "/push/q", &[JSON], b"1"), request("GET", "/health", &[], b"")].concat();
    peer.send(&both);
    assert_eq!(peer.answer().status, 202);
    assert_eq!(peer.answer().text(), "I'm alive!");
}

#[test]
fn a_stop_waits_for_what_is_under_way_and_no_longer_than_it_may() {
    let stop_time = Duration::from_secs(5);
    let mut scene = Scene::with(|options| options.limits.stop_time = stop_time);
    let begin = || {
        // The server asks for the body once it has begun with the request: from then on it is under way.
        let mut peer = scene.peer();
        let headers = [JSON, ("content-length", "1"), ("expect", "100-continue")];
        peer.send(&request("POST", "/push/q", &headers, b""));
        assert_eq!(peer.head().status, 100);
        peer
    };
    let (mut under_way, mut never) = (begin(), begin());
    let mut idle = scene.peer();
    idle.send(&request("GET", "/health", &[], b""));
    assert_eq!(idle.answer().status, 200);
    let begun = Instant::now();
    scene.shutdown.graceful();
    assert!(idle.closes() < stop_time / 2);
    under_way.send(b"7");
    assert_eq!(under_way.answer().status, 202);
    never.closes();
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
    assert!(begun.elapsed() >= stop_time / 2, "{:?}", begun.elapsed());
    assert_eq!(scene.ready("q"), 1);
}

#[test]
fn a_peer_that_ends_what_it_sends_is_answered_and_one_that_is_gone_is_noticed() {
    let scene = Scene::new();
    for nth in 0..50 {
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/q", &[JSON, ("connection", "close")], b"1"));
        peer.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(peer.answer().status, 202, "{nth}");
        peer.closes();
    }
    assert_eq!(scene.ready("q"), 50);
    // Several requests that came at once.
    for nth in 0..20 {
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/many", &[JSON], b"1").repeat(5));
        peer.stream.shutdown(Shutdown::Write).unwrap();
        for of in 0..5 {
            assert_eq!(peer.answer().status, 202, "{of} of {nth}");
        }
        peer.closes();
    }
    assert_eq!(scene.ready("many"), 100);
    // Between two requests nobody is owed anything.
    let mut peer = scene.peer();
    peer.send(&request("GET", "/health", &[], b""));
    assert_eq!(peer.answer().status, 200);
    peer.stream.shutdown(Shutdown::Write).unwrap();
    assert!(peer.closes() < Duration::from_secs(1));
    // One that has sent half of a request.
    let mut peer = scene.peer();
    peer.send(b"POST /push/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n\"");
    peer.stream.shutdown(Shutdown::Write).unwrap();
    peer.closes();
    assert_eq!(scene.ready("q"), 50);
}
