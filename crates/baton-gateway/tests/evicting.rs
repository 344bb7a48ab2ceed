//! A Redis that may drop stored messages makes the gateway not ready, by name.

mod scene;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use baton_servers::RedisServer;
use scene::{Scene, until};

#[test]
fn a_server_that_may_drop_messages_is_named_and_what_is_stored_can_be_read() {
    let folder = tempfile::TempDir::new().unwrap();
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let scene = Scene::begin(&server.url(), |_| {}, |_| {});
    scene.until_ready();
    let policy = |policy: &str| {
        let mut peer = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        peer.write_all(format!("CONFIG SET maxmemory-policy {policy}\r\n").as_bytes()).unwrap();
        let mut answer = [0; 5];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+OK\r\n");
    };
    assert_eq!(scene.push("q", b"1").status, 202);
    policy("allkeys-lru");
    until("it is not ready", || scene.get("/health/ready").status == 503);
    let problem = scene.get("/health/ready").problem(503, "store-evicts");
    assert!(problem["detail"].as_str().unwrap().contains("CONFIG SET maxmemory-policy noeviction"), "{problem}");
    scene.push("q", b"2").problem(503, "no-room");
    assert_eq!(scene.get("/messages/q/1").json()["state"], "ready");
    assert_eq!(scene.get("/health").status, 200);
    policy("noeviction");
    until("it is ready", || scene.get("/health/ready").status == 200);
    // The session that was refused tries again after a pause.
    until("messages are taken", || scene.push("q", b"2").status == 202);
}
