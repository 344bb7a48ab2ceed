//! Room for bodies and requests: what it is held by, and how much of it one peer can have.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use baton::Name;
use baton_gateway::{
    Limits,
    tokens::{Right, TokenFile},
};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use scene::{JSON, NDJSON, Peer, Scene, request, until};

const KIB: usize = 1 << 10;
const CHUNKED: (&str, &str) = ("transfer-encoding", "chunked");

/// Room for four messages of the size that is used here.
fn small(limits: Limits) -> Scene {
    Scene::with(|options| options.limits = Limits { body_bytes: 256 * KIB, ..limits })
}

fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A peer at another address of this machine.
fn from_address(scene: &Scene, last: u8) -> Peer {
    let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    let end = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&end, &own).unwrap();
    connect(&end, &scene.address).unwrap();
    Peer::over(TcpStream::from(end))
}

#[test]
fn lines_that_are_stored_hold_no_room() {
    let scene = small(Limits::default());
    let mut uploads = Vec::new();
    for nth in 1..=16 {
        let mut peer = scene.peer();
        peer.send(&request("POST", "/push/lines", &[NDJSON, CHUNKED], &chunk(&format!("{}\n", text(60 * KIB)))));
        until("its line is stored", || scene.ready("lines") == nth);
        peer.send(&chunk("\n"));
        uploads.push(peer);
    }
    assert_eq!(scene.push("q", text(60 * KIB).as_bytes()).status, 202);
    for mut upload in uploads {
        upload.send(b"0\r\n\r\n");
        assert_eq!(upload.answer().status, 202);
    }
}

#[test]
fn what_is_declared_and_does_not_come_holds_no_room() {
    let scene = small(Limits::default());
    let declare = |_| {
        let mut peer = scene.peer();
        let headers = [JSON, ("content-length", "1000000"), ("expect", "100-continue")];
        peer.send(&request("POST", "/push/q", &headers, b""));
        assert_eq!(peer.head().status, 100);
        peer.send(b"\"");
        peer
    };
    let declared: Vec<Peer> = (0..16).map(declare).collect();
    assert_eq!(scene.push("q", text(60 * KIB).as_bytes()).status, 202);
    drop(declared);
}

/// Takes as many bytes as this peer can get: unfinished messages that did come.
fn take_all_bytes(peer: impl Fn() -> Peer, bearer: impl Fn(u8) -> String) -> Vec<Peer> {
    let mut held = Vec::new();
    for nth in 0..40 {
        let (mut one, bearer) = (peer(), bearer(nth));
        let headers = [NDJSON, CHUNKED, ("authorization", &*bearer)];
        one.try_send(&request("POST", "/push/held", &headers, &chunk(&text(20 * KIB))));
        held.push(one);
    }
    held
}

#[test]
fn the_bearer_of_one_token_cannot_take_all_room_for_bytes() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let [greedy, modest] =
        ["greedy", "modest"].map(|it| format!("Bearer {}", file.add(&Name::new(it).unwrap(), Right::Operate).unwrap()));
    let limits = Limits { body_bytes: 256 * KIB, ..Limits::default() };
    let scene = Scene::with(|options| (options.limits, options.tokens) = (limits, Some(file)));
    let push = |bearer: &str| {
        scene.ask("POST", "/push/q", &[JSON, ("authorization", bearer)], text(60 * KIB).as_bytes()).status
    };
    let held = take_all_bytes(|| scene.peer(), |_| greedy.clone());
    until("it has its share", || push(&greedy) == 503);
    assert_eq!(push(&modest), 202);
    drop(held);
    until("its room is given back", || push(&greedy) == 202);
}

#[test]
fn the_peers_of_one_address_cannot_take_all_room() {
    let limits = Limits { body_bytes: 256 * KIB, requests: 16, ..Limits::default() };
    let scene = Scene::with(|options| options.limits = limits);
    let push = |last| {
        let mut peer = from_address(&scene, last);
        peer.send(&request("POST", "/push/q", &[JSON], text(60 * KIB).as_bytes()));
        peer.answer().status
    };
    // A token that nobody asks for makes no other peer.
    let held = take_all_bytes(|| from_address(&scene, 2), |nth| format!("Bearer made-up-{nth}"));
    until("it has its share", || push(2) == 503);
    assert_eq!(push(3), 202);
    drop(held);
    until("its room is given back", || push(2) == 202);
    let under_way: Vec<Peer> = (0..40)
        .map(|_| {
            let mut peer = from_address(&scene, 2);
            peer.try_send(&request("POST", "/push/q", &[JSON, ("content-length", "10")], b"\""));
            peer
        })
        .collect();
    until("it has its share", || push(2) == 503);
    assert_eq!(push(3), 202);
    drop(under_way);
}

/// Ids are told at the end. Where others push too they do not follow each other, and each range has to be kept.
#[test]
fn an_upload_without_end_has_a_bound_and_is_told_what_it_has_stored() {
    let limits = Limits { body_bytes: 8 * KIB, ..Limits::default() };
    let scene = Scene::with(|options| options.limits = limits);
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[NDJSON, CHUNKED], b""));
    // Each range counts 256 bytes, and half of all bytes are for one peer.
    for nth in 1..=16 {
        peer.send(&chunk("1\n"));
        until("the line is stored", || scene.ready("q") == 2 * nth - 1);
        let mut other = from_address(&scene, 3);
        other.send(&request("POST", "/push/q", &[JSON], b"2"));
        assert_eq!(other.answer().status, 202);
    }
    peer.send(&chunk("1\n"));
    let problem = peer.answer().problem(503, "busy");
    assert_eq!((problem["stored"].as_u64(), problem["ids"].as_array().unwrap().len()), (Some(16), 16));
    assert_eq!(scene.ready("q"), 32);
}
