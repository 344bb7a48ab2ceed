//! Messages from outside: one, many, once under a key, and those that are none.

mod scene;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use baton_gateway::Limits;
use baton_servers::RedisServer;
use scene::{JSON, NDJSON, Scene, on_each_store, request};
use serde_json::json;

#[test]
fn a_message_is_stored_when_it_is_answered() {
    on_each_store(|scene| {
        let answer = scene.push("emails:high", br#" {"to": "ada"} "#);
        assert_eq!(answer.status, 202, "{answer:?}");
        let (pushed, born) = answer.json_and_birth();
        assert_eq!(pushed, json!({"queue": "emails:high", "stored": 1, "ids": [{"first": 1, "last": 1}], "nodes": 0}));
        assert_eq!(answer.header("location"), Some(format!("/messages/emails:high/1@{born}").as_str()));
        assert_eq!(scene.ready("emails:high"), 1);
    });
}

#[test]
fn the_same_key_and_body_are_one_message_and_another_body_is_refused() {
    on_each_store(|scene| {
        let with = |queue: &str, key: &str, body: &[u8]| {
            scene.ask("POST", &format!("/push/{queue}"), &[("idempotency-key", key), JSON], body)
        };
        let first = with("q", "order-7", b"[1]").json();
        assert_eq!(with("q", "order-7", b"[1]").json(), first);
        // Quoted as others write it.
        assert_eq!(with("q", "\"order-7\"", b" [1]\n").json(), first);
        with("q", "order-7", b"[2]").problem(422, "key-used");
        with("other", "order-7", b"[1]").problem(422, "key-used");
        assert_ne!(with("q", "order-8", b"[1]").json(), first);
        with("q", "", b"[1]").problem(400, "bad-key");
        with("q", &"k".repeat(201), b"[1]").problem(400, "bad-key");
        assert_eq!((scene.ready("q"), scene.ready("other")), (2, 0));
    });
}

#[test]
fn many_messages_are_stored_as_they_come_and_a_bad_line_says_how_many_are() {
    on_each_store(|scene| {
        let many: String = (1..=2000).map(|n| format!("{{\"n\":{n}}}\r\n\n")).collect();
        let answer = scene.ask("POST", "/push/many", &[NDJSON], many.as_bytes());
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(
            answer.json(),
            json!({"queue": "many", "stored": 2000, "ids": [{"first": 1, "last": 2000}], "nodes": 0})
        );
        let some = format!("{}[[\n1\n2\n", "7\n".repeat(700));
        let problem = scene.ask("POST", "/push/many", &[NDJSON], some.as_bytes()).problem(400, "bad-json");
        assert_eq!((&problem["stored"], &problem["line"]), (&json!(700), &json!(701)));
        assert!(problem["detail"].as_str().unwrap().starts_with("line 701: "), "{problem}");
        assert_eq!(problem["ids"], json!([{"first": 2001, "last": 2700}]));
        assert_eq!(scene.ready("many"), 2700);
        // Without an end of its last line, in chunks that end anywhere.
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/many", &[NDJSON, ("transfer-encoding", "chunked")], b""));
        for chunk in ["1\n[2", ",3]\n", "\n\n\"", "x\"\n4"] {
            peer.send(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes());
        }
        peer.send(b"0\r\n\r\n");
        assert_eq!(peer.answer().json()["stored"], 4);
        assert_eq!(scene.ready("many"), 2704);
        // One who sends little is not waited for until there is more.
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/few", &[NDJSON, ("transfer-encoding", "chunked")], b""));
        peer.send(b"2\r\n1\n\r\n");
        scene::until("the line is stored", || scene.ready("few") == 1);
        peer.send(b"0\r\n\r\n");
        assert_eq!(peer.answer().json()["stored"], 1);
    });
}

#[test]
fn what_is_no_message_is_refused_with_its_reason_and_changes_nothing() {
    let scene = Scene::new();
    for bad in [&b""[..], b"{", b"nonsense", b"1 2", b"\"\xff\"", b"{\"a\":}"] {
        scene.push("q", bad).problem(400, "bad-json");
    }
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(scene.push("deep", deep(128).as_bytes()).status, 202);
    scene.push("q", deep(129).as_bytes()).problem(400, "too-deep");
    scene.push("q", deep(400_000).as_bytes()).problem(400, "too-deep");
    scene.ask("POST", "/push/q", &[NDJSON], format!("1\n{}", deep(129)).as_bytes()).problem(400, "too-deep");
    scene.push("b%20d", b"1").problem(400, "bad-queue");
    scene.push(&"q".repeat(65), b"1").problem(400, "bad-queue");
    scene.push("%ff", b"1").problem(400, "bad-path");
    scene.ask("POST", "/push/q", &[("content-type", "text/plain")], b"1").problem(415, "media-type");
    scene.ask("POST", "/push/q", &[], b"1").problem(415, "media-type");
    scene.ask("POST", "/push/q", &[JSON, ("content-encoding", "gzip")], b"\x1f\x8b").problem(415, "encoded");
    scene.ask("POST", "/push/q", &[NDJSON, ("idempotency-key", "k")], b"1\n").problem(400, "key-of-many");
    // The line before the one that is wrong is stored.
    assert_eq!(scene.ready("q"), 1);
}

#[test]
fn a_message_may_have_a_mebibyte_and_no_more_however_its_length_is_told() {
    let scene = Scene::new();
    let largest = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    assert_eq!(scene.push("q", largest.as_bytes()).status, 202);
    let over = format!("\"{}\"", "x".repeat((1 << 20) - 1));
    scene.push("q", over.as_bytes()).problem(413, "too-large");
    let chunked = format!("{:x}\r\n{over}\r\n0\r\n\r\n", over.len());
    let chunked = request("POST", "/push/q", &[JSON, ("transfer-encoding", "chunked")], chunked.as_bytes());
    let mut peer = scene.peer();
    peer.try_send(&chunked);
    peer.answer().problem(413, "too-large");
    let lines = format!("1\n{over}\n2\n");
    let problem = scene.ask("POST", "/push/lines", &[NDJSON], lines.as_bytes()).problem(413, "too-large");
    assert_eq!((&problem["stored"], &problem["line"]), (&json!(1), &json!(2)));
    // Without a word of its body: the length says enough.
    let mut peer = scene.peer();
    let expects = [JSON, ("content-length", "99999999"), ("expect", "100-continue")];
    peer.send(&request("POST", "/push/q", &expects, b""));
    peer.answer().problem(413, "too-large");
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[JSON, ("content-length", "18446744073709551616")], b""));
    assert_eq!(peer.head().status, 400);
    assert_eq!(scene.ready("q"), 1);
}

#[test]
fn who_expects_to_go_on_is_told_to() {
    let scene = Scene::new();
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[JSON, ("content-length", "1"), ("expect", "100-continue")], b""));
    assert_eq!(peer.head().status, 100);
    peer.send(b"7");
    assert_eq!(peer.answer().status, 202);
}

#[test]
fn a_queue_that_is_full_is_told_with_a_time_and_nobody_waits() {
    let scene = Scene::begin("memory:", |fleet| fleet.session.max_queue_bytes = 1000, |_| {});
    scene.until_ready();
    let body = format!("\"{}\"", "x".repeat(600));
    assert_eq!(scene.push("q", body.as_bytes()).status, 202);
    scene::until("it is full", || scene.push("q", body.as_bytes()).status == 429);
    let full = scene.push("q", body.as_bytes());
    full.problem(429, "queue-full");
    let seconds: u64 = full.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    let many = format!("{body}\n{body}\n");
    let problem = scene.ask("POST", "/push/q", &[NDJSON], many.as_bytes()).problem(429, "queue-full");
    assert_eq!(problem["stored"], 0);
}

#[test]
fn a_store_without_room_is_told_at_once_and_what_was_refused_is_not_stored_later() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    let most = |bytes: u8| {
        let mut peer = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        peer.write_all(format!("CONFIG SET maxmemory {bytes}\r\n").as_bytes()).unwrap();
        let mut answer = [0; 5];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+OK\r\n");
    };
    assert_eq!(scene.push("q", b"1").status, 202);
    most(1);
    for _ in 0..20 {
        scene.push("q", &[b'1'; 10_000]).problem(503, "no-room");
    }
    most(0);
    scene::until("there is room", || scene.push("q", b"2").status == 202);
    assert_eq!(scene.ready("q"), 2);
}

#[test]
fn slow_lines_take_no_place_of_a_request() {
    let limits = Limits { requests: 4, ..Limits::default() };
    let scene = Scene::with(|options| options.limits = limits);
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut peer = scene.peer();
            peer.send(&request("POST", "/push/slow", &[NDJSON, ("transfer-encoding", "chunked")], b"2\r\n1\n\r\n"));
            peer
        })
        .collect();
    scene::until("they are all under way", || scene.ready("slow") == 8);
    assert_eq!(scene.push("q", b"1").status, 202);
    drop(slow);
}

#[test]
fn over_the_bounds_of_what_is_under_way_requests_are_shed_and_health_is_told() {
    // A peer gets half of each.
    let limits = Limits { requests: 4, body_bytes: 16 << 10, ..Limits::default() };
    let scene = Scene::with(|options| options.limits = limits);
    let begin = |comes: usize| {
        let mut peer = scene.peer();
        let body = format!("\"{}", "x".repeat(comes));
        peer.send(&request("POST", "/push/q", &[JSON, ("content-length", "10000")], body.as_bytes()));
        peer
    };
    let mut one = Vec::new();
    scene::until("its bytes are taken", || {
        // One that comes while a push is under way has no room itself.
        one.push(begin(6000));
        (0..3).all(|_| scene.push("q", &[b' '; 6000]).status == 503)
    });
    scene.push("q", &[b' '; 6000]).problem(503, "busy");
    let mut further = Vec::new();
    scene::until("two are under way", || {
        // The answer of the one before may still hold its place.
        further.push(begin(0));
        scene.get("/api/openapi.json").status == 503
    });
    let shed = scene.push("q", b"1");
    shed.problem(503, "busy");
    assert!(shed.header("retry-after").is_some());
    assert_eq!(scene.get("/health").status, 200);
    drop((one, further));
    scene::until("there is room again", || scene.push("q", b"1").status == 202);
}

#[test]
fn lines_that_curl_has_joined_are_refused_with_what_to_do() {
    let scene = Scene::new();
    let problem = scene.ask("POST", "/push/q", &[NDJSON], br#"{"n":1}{"n":2}"#).problem(400, "bad-json");
    assert!(problem["detail"].as_str().unwrap().contains("--data-binary"), "{problem}");
    let problem = scene.ask("POST", "/push/q", &[NDJSON], br#"{"n":1}]"#).problem(400, "bad-json");
    assert!(!problem["detail"].as_str().unwrap().contains("--data-binary"), "{problem}");
}
