//! A fleet whose processes were started before its store.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};

fn send(address: &str, head: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\ncontent-type: application/json\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// Where the gateway says it is.
fn address(sandbox: &Sandbox) -> String {
    let mut address = String::new();
    until("the gateway is there", || {
        let log = sandbox.log();
        let found = log.split("gateway=http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        address = found.unwrap_or_default().to_owned();
        !address.is_empty()
    });
    address
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_gateway_and_nodes_started_before_redis_answer_in_order_when_it_comes_and_after_a_restart() {
    let mut server = RedisServer::start(Persistence::AofAlways);
    server.kill();
    let begun = Instant::now();
    let sandbox = Sandbox::on(&server);
    let _node = sandbox.start(&["node", "--queue", "work", "--handler", "noop"]);
    let up = ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--listen", "0"];
    let _up = sandbox.start(&up);
    let address = address(&sandbox);
    let is_ready = |address: &str| answer(send(address, "GET /health/ready", "")).starts_with("HTTP/1.1 200 ");
    for round in 0..2 {
        if round > 0 {
            until("all are done", || sandbox.count("work", "done") == 20);
            server.kill();
            until("it is noticed", || !is_ready(&address));
        }
        assert!(answer(send(&address, "GET /health", "")).ends_with("I'm alive!"));
        let waiting =
            |count: usize| answer(send(&address, "GET /health/ready", "")).contains(&format!("\"waiting\":{count}"));
        let mut sent = Vec::new();
        for number in 0..20 {
            sent.push(send(&address, "POST /push/work", &number.to_string()));
            until("it waits", || waiting(sent.len()));
        }
        std::thread::sleep(Duration::from_secs(3).saturating_sub(begun.elapsed()));
        server.restart();
        let ids = sent.into_iter().map(|stream| {
            let answer = answer(stream);
            assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
            let id = answer.split("location: /messages/work/").nth(1).and_then(|rest| rest.split("\r\n").next());
            id.and_then(|id| id.split('@').next()).unwrap().parse::<u64>().unwrap()
        });
        let ids: Vec<u64> = ids.collect();
        assert!(ids.is_sorted() && ids.len() == 20, "{ids:?}");
        until("it is ready", || is_ready(&address));
    }
    until("all are done", || sandbox.count("work", "done") == 40);
    sandbox.run(&["stop"]).expect(0);
    sandbox.run(&["audit", "--deep"]).expect(0);
}

#[test]
fn up_with_a_gateway_waits_for_redis_without_a_bound_unless_one_is_said_and_tells_who_waits_when_it_goes() {
    let mut server = RedisServer::start(Persistence::None);
    server.kill();
    let up = ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--listen", "0"];
    for (bound, code) in [(&[][..], 0), (&["--wait", "3"][..], 5)] {
        let sandbox = Sandbox::on(&server);
        let mut up = sandbox.start(&[&up[..], bound].concat());
        let address = address(&sandbox);
        let waiting = send(&address, "POST /push/work", "1");
        until("it waits", || answer(send(&address, "GET /health/ready", "")).contains("\"waiting\":1"));
        if bound.is_empty() {
            let said = "waiting for it (--wait SECONDS is a limit)";
            until("it says so", || sandbox.log().contains(said));
            let log = sandbox.log();
            assert!(log.find("gateway=http") < log.find(said), "it is told where it is when it listens: {log}");
            up.signal("-TERM");
        }
        let told = answer(waiting);
        assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("store-away"), "{told}");
        assert_eq!(up.wait(), Some(code), "{}", sandbox.log());
    }
}
