//! What is under way when the gateway stops.

mod scene;

use std::time::{Duration, Instant};

use scene::{JSON, NDJSON, Scene, request, until};
use serde_json::json;

const CHUNKED: (&str, &str) = ("transfer-encoding", "chunked");

fn stopping_after(time: Duration) -> Scene {
    Scene::with(|options| options.limits.stop_time = time)
}

#[test]
fn an_upload_is_told_at_once_what_it_has_stored() {
    let mut scene = stopping_after(Duration::from_secs(60));
    let mut uploads: Vec<_> = (1..=2)
        .map(|nth| {
            let mut peer = scene.peer();
            peer.send(&request("POST", "/push/q", &[NDJSON, CHUNKED], b"2\r\n1\n\r\n"));
            until("its first line is stored", || scene.ready("q") == nth);
            (nth, peer)
        })
        .collect();
    // The second sends on and on.
    let mut sender = uploads[1].1.sender();
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let sending = std::thread::spawn(move || {
        while has_ended.recv_timeout(Duration::from_millis(5)).is_err() {
            sender.try_send(b"2\r\n2\n\r\n");
        }
    });
    let begun = Instant::now();
    scene.shutdown.graceful();
    for (nth, peer) in &mut uploads {
        let problem = peer.answer().problem(503, "stopping");
        let stored = problem["stored"].as_u64().unwrap();
        assert!(stored >= 1 && problem["line"] == stored + 1, "{problem}");
        if *nth == 1 {
            assert_eq!(problem["ids"], json!([{"first": 1, "last": 1}]), "{problem}");
        }
    }
    ended.send(()).unwrap();
    sending.join().unwrap();
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn what_is_broken_off_at_the_end_may_be_stored() {
    let mut scene = stopping_after(Duration::from_millis(200));
    let mut peer = scene.peer();
    peer.send(&request("POST", "/push/q", &[JSON, ("content-length", "3"), ("expect", "100-continue")], b""));
    assert_eq!(peer.head().status, 100);
    scene.shutdown.graceful();
    let problem = peer.answer().problem(503, "maybe-stored");
    assert!(problem["detail"].to_string().contains("may have been carried out"), "{problem}");
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
}
