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
use scene::{JSON, SSE, Scene, until};
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
    let url = server.url();
    let address = url.trim_start_matches("redis://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"FLUSHALL\r\n").unwrap();
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
    let id = lost.trim_start_matches("/jobs/").to_owned();
    assert_eq!(scene.get(&lost).json(), before.json());
    lose_all(&server);
    // A node that works again has seen the loss.
    until("others have the ids", || push(b"21", &[]).status == 200);
    let later = scene.get("/jobs/double/1");
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
    for events in [format!("{lost}/events"), "/jobs/double/1/events".to_owned()] {
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
    assert!(rest.contains("other-message") || rest.contains("there is no call"), "{rest}");
}
