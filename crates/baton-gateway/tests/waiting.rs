//! A caller whose message waits learns why.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::sync::Arc;

use baton::{Context, Done, Failure, Name, QueuePolicy, admin::Admin};
use scene::{JSON, NDJSON, Scene, on_each_store, until};
use tokio::sync::Semaphore;

/// Works for `count`, one message at a time, each when it is let.
fn counts(scene: &Scene, lets: &Arc<Semaphore>) {
    let lets = Arc::clone(lets);
    let policy = QueuePolicy { concurrency: 1, ..QueuePolicy::default() };
    let node = scene.fleet.node().policy(policy).handler("count", move |_: u64, _: Context| {
        let lets = Arc::clone(&lets);
        async move {
            lets.acquire().await.map_err(Failure::new)?.forget();
            Ok(Done::default())
        }
    });
    scene.work(node);
}

fn pause(scene: &Scene, queue: &str) {
    let admin = Admin::new(&scene.fleet);
    scene.runtime.block_on(admin.pause_unseen(&Name::new(queue).unwrap())).unwrap();
}

#[test]
fn a_wait_that_ends_before_the_message_says_why() {
    on_each_store(|scene| {
        let wait = |queue: &str| {
            let answer = scene.ask("POST", &format!("/push/{queue}"), &[JSON, ("prefer", "wait=1")], b"1");
            assert_eq!(answer.status, 202, "{answer:?}");
            let json = answer.json();
            let text = |member: &str| json[member].as_str().unwrap_or_default().to_owned();
            (text("state"), text("why"))
        };
        let waiting = |why: &str| ("ready".to_owned(), why.to_owned());
        assert_eq!(wait("count"), waiting("no live node works for queue count"));
        pause(scene, "held");
        assert_eq!(wait("held"), waiting("queue held is paused; `baton resume held` lets it go on"));
        counts(scene, &Arc::new(Semaphore::new(0)));
        until("a node runs it", || scene.get("/messages/count/1").json()["state"] == "in-flight");
        let many = "1\n".repeat(5000);
        assert_eq!(scene.ask("POST", "/push/count", &[NDJSON], many.as_bytes()).status, 202);
        let (state, why) = wait("count");
        assert!(state == "ready" && why.starts_with("up to ") && why.ends_with(" before it in queue count"), "{why}");
        let again = [JSON, ("idempotency-key", "k"), ("prefer", "wait=1")];
        scene.work(scene.fleet.node().handler("slow", async |_: u64, context: Context| {
            context.cancelled().await;
            Ok(Done::default())
        }));
        until("a node runs it", || {
            let answer = scene.ask("POST", "/push/slow", &again, b"1").json();
            answer["state"] == "in-flight" && answer["why"] == "a node runs it"
        });
    });
}

#[test]
fn a_stream_says_why_its_message_waits() {
    let scene = Scene::new();
    let sse = [JSON, ("accept", "text/event-stream")];
    let (_, mut events) = scene.open("POST", "/call/nothing", &sse, b"1");
    assert!(events.streamed(": waiting: no live node works for queue nothing\n\n").starts_with("retry: "));
    pause(&scene, "held");
    let (_, mut lines) = scene.open("POST", "/call/held", &[JSON], b"1");
    let why = "queue held is paused; `baton resume held` lets it go on";
    assert_eq!(lines.streamed("\n"), format!("{{\"event\":\"waiting\",\"data\":{{\"why\":\"{why}\"}}}}\n"));
}

#[test]
fn a_full_queue_says_what_keeps_it_full() {
    let scene = Scene::begin("memory:", |fleet| fleet.session.max_queue_bytes = 1000, |_| {});
    scene.until_ready();
    let body = format!("\"{}\"", "x".repeat(600));
    let full = |queue: &str| {
        until("it is full", || scene.push(queue, body.as_bytes()).status == 429);
        scene.push(queue, body.as_bytes()).problem(429, "queue-full")["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(full("q"), "queue q is full: no live node works for queue q");
    pause(&scene, "held");
    until("it is known to be paused", || full("held").starts_with("queue held is full: queue held is paused"));
}
