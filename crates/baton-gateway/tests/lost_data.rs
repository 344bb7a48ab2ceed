//! A store that has lost its data gives ids again: whoever asks for a message of before is told so, and never given another's.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use baton::{Context, Done};
use baton_servers::RedisServer;
use scene::{JSON, NDJSON, Peer, SSE, Scene, request, until};
use serde_json::json;

/// A gateway over Redis with a node that is done with the double of each number, from where on `--until` lets it.
fn doubling(scene: &Scene) {
    let node = scene.fleet.node().handler("double", async |n: u64, context: Context| {
        context.emit("seen", &n).await?;
        if n == 0 {
            std::future::pending::<()>().await
        }
        Ok(Done::with(&(2 * n))?)
    });
    scene.work(node);
}

/// Takes all data from the server, as a loss would.
fn lose_all(server: &RedisServer) {
    tell(server, "FLUSHALL");
}

fn tell(server: &RedisServer, command: &str) {
    let url = server.url();
    let address = url.trim_start_matches("redis://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}

#[test]
fn a_message_of_before_a_loss_is_gone_and_not_another() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    doubling(&scene);
    let push = |body: &[u8], headers: &[(&str, &str)]| {
        scene.ask("POST", "/push/double", &[&[JSON, ("prefer", "wait=30")], headers].concat(), body)
    };
    let before = push(b"1", &[("idempotency-key", "k")]);
    assert_eq!((before.status, &before.json()["result"]), (200, &json!(2)));
    let lost = before.header("location").unwrap().to_owned();
    let id = lost.trim_start_matches("/messages/").to_owned();
    let mut pushed = before.json();
    // The answer of a push also counts the nodes.
    pushed.as_object_mut().unwrap().remove("nodes");
    assert_eq!(scene.get(&lost).json(), pushed);
    lose_all(&server);
    // A node that works again has seen the loss.
    until("others have the ids", || push(b"21", &[]).status == 200);
    let later = scene.get("/messages/double/1");
    assert_eq!(later.json()["result"], json!(42));
    let found = later.header("location").unwrap();
    assert_ne!(found, lost);
    assert_eq!(scene.get(found).json(), later.json());
    for (method, path) in [("GET", lost.clone()), ("DELETE", lost.clone()), ("GET", format!("{lost}/events"))] {
        let problem = scene.ask(method, &path, &[], b"").problem(410, "other-message");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("lost data") && !detail.contains('\n'), "{detail}");
    }
    // As a browser comes again: to where it was, with the last event that it has read.
    for events in [format!("{lost}/events"), "/messages/double/1/events".to_owned()] {
        let read = [SSE, ("last-event-id", &*format!("{id}:1"))];
        scene.ask("GET", &events, &read, b"").problem(410, "other-message");
    }
    scene
        .ask("GET", &format!("{found}/events"), &[("last-event-id", &*format!("{id}:1"))], b"")
        .problem(410, "other-message");
    // The key is of another message by now, which has a name of its own.
    let again = push(b"1", &[("idempotency-key", "k")]);
    assert_eq!((again.status, &again.json()["result"]), (200, &json!(2)));
    assert_ne!(again.header("location").unwrap(), lost);
}

#[test]
fn a_stream_and_a_wait_do_not_go_on_with_another_message() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    doubling(&scene);
    let (_, mut peer) = scene.open("POST", "/call/double", &[JSON, SSE], b"0");
    peer.streamed("event: seen");
    lose_all(&server);
    until("others have the ids", || {
        std::thread::sleep(Duration::from_millis(50));
        scene.push("double", b"21").status == 202
    });
    let rest = peer.rest();
    assert!(rest.contains("event: error") && !rest.contains("data: 42"), "{rest}");
    assert!(rest.contains("other-message") || rest.contains(" is lost: "), "{rest}");
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Begins an upload of lines; the first is stored.
fn upload(scene: &Scene) -> Peer {
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[NDJSON, ("transfer-encoding", "chunked")], &chunk("1\n")));
    until("its first line is stored", || scene.ready("q") == 1);
    peer
}

#[test]
fn an_upload_over_a_loss_is_told_that_its_first_lines_are_gone() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    for rest in [&b"0\r\n\r\n"[..], &[chunk("2\n"), b"0\r\n\r\n".to_vec()].concat()] {
        let mut peer = upload(&scene);
        lose_all(&server);
        until("the loss is known", || scene.push("other", b"1").status == 202);
        peer.send(rest);
        let problem = peer.answer().problem(410, "data-lost");
        assert_eq!((&problem["stored"], &problem["ids"]), (&json!(0), &json!([])), "{problem}");
        assert_eq!(scene.ready("q"), 0);
    }
}

#[test]
fn an_upload_over_a_fall_back_to_a_former_state_is_told_that_its_first_lines_are_gone() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    assert_eq!(scene.push("other", b"1").status, 202);
    tell(&server, "SAVE");
    let mut peer = upload(&scene);
    server.kill();
    server.restart().unwrap();
    until("the store is there again", || scene.push("other", b"1").status == 202);
    peer.send(&[chunk("2\n"), b"0\r\n\r\n".to_vec()].concat());
    let problem = peer.answer().problem(410, "data-lost");
    assert_eq!((&problem["stored"], &problem["ids"]), (&json!(1), &json!([{"first": 1, "last": 1}])), "{problem}");
    assert_eq!(scene.ready("q"), 1);
}

#[test]
fn a_wait_for_a_message_that_is_lost_says_that_it_is_gone() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    for key in [&[][..], &[("idempotency-key", "k")]] {
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/q", &[&[JSON, ("prefer", "wait=50")], key].concat(), b"1"));
        until("it is stored", || scene.ready("q") == 1);
        lose_all(&server);
        until("the loss is known", || scene.push("other", b"1").status == 202);
        peer.answer().problem(410, "gone");
    }
}
