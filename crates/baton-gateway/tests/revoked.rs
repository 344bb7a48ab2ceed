//! A token that is revoked while requests that it opened are under way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::time::{Duration, Instant};

use baton::Name;
use baton_gateway::{
    GatewayOptions,
    tokens::{Right, TokenFile},
};
use scene::{Answer, JSON, NDJSON, Peer, Scene, request, until};

/// How soon a request has ended after its token was revoked. The file is looked at four times a second.
const SOON: Duration = Duration::from_secs(3);

/// A file with a token to revoke and one that stays, and what their bearers send.
struct Tokens {
    file: TokenFile,
    bearer: String,
    stays: String,
    _folder: tempfile::TempDir,
}

impl Tokens {
    fn new() -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.json"));
        let add = |name| format!("Bearer {}", file.add(&Name::new(name).unwrap(), Right::Operate).unwrap());
        let (bearer, stays) = (add("goes"), add("stays"));
        Self { file, bearer, stays, _folder: folder }
    }

    fn options(&self, options: &mut GatewayOptions) {
        options.tokens = Some(self.file.clone());
    }

    fn head<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [&[("authorization", self.bearer.as_str())], more].concat()
    }

    fn revoke(&self) -> Instant {
        self.file.revoke(&Name::new("goes").unwrap()).unwrap();
        Instant::now()
    }
}

#[track_caller]
fn soon(since: Instant) {
    assert!(since.elapsed() < SOON, "it went on for {:?}", since.elapsed());
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Begins an upload of lines; the first is stored.
fn upload(scene: &Scene, tokens: &Tokens) -> Peer {
    let mut peer = scene.peer();
    let headers = tokens.head(&[NDJSON, ("transfer-encoding", "chunked")]);
    peer.send(&request("POST", "/push/q", &headers, &chunk("1\n")));
    until("its first line is stored", || scene.ready("q") == 1);
    peer
}

#[test]
fn an_upload_ends_and_is_told_what_it_has_stored() {
    let tokens = Tokens::new();
    let scene = Scene::with(|options| tokens.options(options));
    let mut peer = upload(&scene, &tokens);
    let mut sender = peer.sender();
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let sending = std::thread::spawn(move || {
        while has_ended.recv_timeout(Duration::from_millis(100)).is_err() {
            sender.try_send(&chunk("2\n"));
        }
    });
    let revoked = tokens.revoke();
    let problem = peer.answer().problem(401, "token");
    soon(revoked);
    ended.send(()).unwrap();
    sending.join().unwrap();
    let stored = problem["stored"].as_u64().unwrap();
    assert!(stored >= 1 && problem["ids"][0]["first"] == 1 && problem["ids"][0]["last"] == stored, "{problem}");
    assert_eq!(scene.ready("q"), stored);
}

#[test]
fn an_upload_that_says_nothing_ends_too_and_others_go_on() {
    let tokens = Tokens::new();
    let scene = Scene::with(|options| tokens.options(options));
    let mut peer = upload(&scene, &tokens);
    let mut other = scene.peer();
    let headers = [("authorization", tokens.stays.as_str()), NDJSON, ("transfer-encoding", "chunked")];
    other.send(&request("POST", "/push/other", &headers, &chunk("1\n")));
    until("its first line is stored", || scene.ready("other") == 1);
    let revoked = tokens.revoke();
    assert_eq!(peer.answer().problem(401, "token")["stored"], 1);
    soon(revoked);
    other.send(&[chunk("2\n"), b"0\r\n\r\n".to_vec()].concat());
    assert_eq!(other.answer().json()["stored"], 2);
}

#[test]
fn a_message_that_is_coming_in_is_not_stored() {
    let tokens = Tokens::new();
    let scene = Scene::with(|options| tokens.options(options));
    let mut peer = scene.peer();
    let headers = [JSON, ("content-length", "3"), ("expect", "100-continue")];
    peer.send(&request("POST", "/push/q", &tokens.head(&headers), b""));
    assert_eq!(peer.head().status, 100);
    peer.send(b"\"");
    let revoked = tokens.revoke();
    peer.answer().problem(401, "token");
    soon(revoked);
    peer.try_send(b"x\"");
    peer.closes();
    assert_eq!(scene.ready("q"), 0);
}

#[test]
fn a_wait_ends_and_says_that_the_message_is_stored() {
    let tokens = Tokens::new();
    let scene = Scene::with(|options| tokens.options(options));
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &tokens.head(&[JSON, ("prefer", "wait=50")]), b"1"));
    until("it is stored", || scene.ready("q") == 1);
    let revoked = tokens.revoke();
    let answer = peer.answer();
    soon(revoked);
    assert_eq!((answer.status, answer.json()["stored"].as_u64()), (202, Some(1)), "{}", answer.text());
}

#[test]
fn a_stream_in_which_nothing_happens_ends() {
    let tokens = Tokens::new();
    let scene = Scene::with(|options| tokens.options(options));
    let (head, mut stream): (Answer, Peer) = scene.open("POST", "/call/q", &tokens.head(&[JSON]), b"1");
    assert_eq!(head.status, 200);
    let revoked = tokens.revoke();
    let told = stream.rest();
    soon(revoked);
    assert!(told.contains("the token is not valid any more"), "{told}");
}

#[test]
fn a_request_that_waits_for_the_store_ends_and_is_not_carried_out() {
    let tokens = Tokens::new();
    let scene = Scene::begin("redis://127.0.0.1:1/", |_| {}, |options| tokens.options(options));
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &tokens.head(&[JSON]), b"1"));
    until("it waits", || scene.get("/health/ready").problem(503, "store-away")["waiting"] == 1);
    let revoked = tokens.revoke();
    peer.answer().problem(401, "token");
    soon(revoked);
    until("nobody waits", || scene.get("/health/ready").problem(503, "store-away")["waiting"] == 0);
}

#[test]
fn what_is_under_way_while_the_gateway_stops_ends_too() {
    let tokens = Tokens::new();
    let mut scene = Scene::with(|options| {
        tokens.options(options);
        options.limits.stop_time = Duration::from_secs(20);
    });
    let mut peer = scene.peer();
    let headers = [JSON, ("content-length", "3"), ("expect", "100-continue")];
    peer.send(&request("POST", "/push/q", &tokens.head(&headers), b""));
    assert_eq!(peer.head().status, 100);
    scene.shutdown.graceful();
    until("nobody else is let in", || std::net::TcpStream::connect(scene.address).is_err());
    let revoked = tokens.revoke();
    peer.answer().problem(401, "token");
    soon(revoked);
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
}
