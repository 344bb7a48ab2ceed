//! Calls: followed in both forms, gone on with after a cut, waited for, shared and cancelled.

mod scene;

use std::{sync::Arc, time::Duration};

use baton::{Context, Done, Failure};
use scene::{JSON, NDJSON, Peer, SSE, Scene, on_each_store, until};
use serde_json::json;
use tokio::sync::Semaphore;

const SEARCH: &str = "/subsetSum?data=%5B1,2,-3%5D&sum=0";

/// Tells its numbers one by one, each when it is let, and is done with their count.
fn counts(scene: &Scene, lets: &Arc<Semaphore>) {
    let lets = Arc::clone(lets);
    let node = scene.fleet.node().handler("count", move |upto: u64, context: Context| {
        let lets = Arc::clone(&lets);
        async move {
            for n in 1..=upto {
                lets.acquire().await.map_err(Failure::new)?.forget();
                context.emit("counted", &n).await?;
            }
            if upto == 13 { Err(Failure::fatal("unlucky\nnumber")) } else { Ok(Done::with(&upto)?) }
        }
    });
    scene.work(node);
}

#[test]
fn a_call_tells_its_events_as_they_come_in_either_form() {
    on_each_store(|scene| {
        let lets = Arc::new(Semaphore::new(0));
        counts(scene, &lets);
        let (head, mut peer) = scene.open("POST", "/call/count", &[JSON, SSE], b"2");
        assert_eq!(head.status, 200, "{head:?}");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        assert_eq!(head.message().unwrap(), "/messages/count/1");
        let greeting = peer.streamed("\n\n");
        let retry: u64 = greeting.strip_prefix("retry: ").unwrap().trim().parse().unwrap();
        assert!((1000..4000).contains(&retry), "{greeting}");
        lets.add_permits(1);
        assert_eq!(peer.streamed("\n\n"), "id: count/1:1\nevent: counted\ndata: 1\n\n");
        assert_eq!(scene.get("/messages/count/1").json()["state"], "in-flight");
        lets.add_permits(1);
        let rest = peer.rest();
        assert_eq!(rest, "id: count/1:2\nevent: counted\ndata: 2\n\nid: count/1:3\nevent: end\ndata: 2\n\n");
        lets.add_permits(1);
        // As `curl --json` asks.
        let (head, mut peer) = scene.open("POST", "/call/count", &[JSON, ("accept", "application/json")], b"1");
        assert_eq!(head.header("content-type"), Some("application/x-ndjson"));
        assert_eq!(head.message().unwrap(), "/messages/count/2");
        let told = "{\"number\":1,\"event\":\"counted\",\"data\":1}\n{\"number\":2,\"event\":\"end\",\"data\":1}\n";
        assert_eq!(peer.rest(), told);
        for accept in ["*/*", "application/*", "application/json"] {
            let (head, mut peer) = scene.open("GET", "/messages/count/2/events", &[("accept", accept)], b"");
            assert_eq!(head.header("content-type"), Some("application/x-ndjson"), "{accept}");
            assert_eq!(peer.rest(), told, "{accept}");
        }
        let message =
            json!({"queue": "count", "id": 2, "state": "done", "result": 1, "first_event": 1, "next_event": 3});
        let (seen, born) = scene.get("/messages/count/2").json_and_birth();
        assert_eq!((seen, head.header("location")), (message, Some(format!("/messages/count/2@{born}").as_str())));
    });
}

#[test]
fn whoever_was_cut_off_goes_on_behind_what_was_read_and_after_the_end_there_is_nothing() {
    on_each_store(|scene| {
        let lets = Arc::new(Semaphore::new(2));
        counts(scene, &lets);
        let (_, mut peer) = scene.open("POST", "/call/count", &[JSON, SSE], b"3");
        peer.streamed("id: count/1:2\n");
        drop(peer);
        let events = "/messages/count/1/events";
        let (head, mut again) = scene.open("GET", events, &[SSE, ("last-event-id", "count/1:1")], b"");
        assert_eq!(head.status, 200);
        let (_, mut lines) = scene.open("GET", &format!("{events}?from=2"), &[("accept", "application/x-ndjson")], b"");
        let (_, mut now) = scene.open("GET", &format!("{events}?from=now"), &[SSE], b"");
        let (_, mut all) = scene.open("GET", events, &[SSE], b"");
        assert!(again.streamed("id: count/1:2\n").contains("data: 2\n\n"));
        assert!(now.streamed("retry").starts_with("retry"));
        lets.add_permits(1);
        let end = "id: count/1:3\nevent: counted\ndata: 3\n\nid: count/1:4\nevent: end\ndata: 3\n\n";
        assert_eq!(again.rest(), end);
        assert_eq!(now.rest(), end);
        assert!(all.rest().contains("id: count/1:1\nevent: counted\ndata: 1\n\n"));
        assert!(lines.rest().starts_with("{\"number\":2,"));
        // What has ended is told again to those who have not read it, and to nobody else.
        let (_, mut late) = scene.open("GET", events, &[SSE, ("last-event-id", "count/1:3")], b"");
        assert!(late.rest().ends_with("id: count/1:4\nevent: end\ndata: 3\n\n"));
        let headers = [SSE, ("last-event-id", "count/1:4")];
        let over = scene.ask("GET", events, &headers, b"");
        assert_eq!((over.status, over.body.len()), (204, 0));
        assert_eq!(scene.get(&format!("{events}?from=now")).status, 204);
        assert_eq!(scene.get(&format!("{events}?from=99999999999999999999")).status, 204);
        scene.ask("GET", events, &[("last-event-id", "count/2:1")], b"").problem(400, "bad-event-id");
        scene.ask("GET", events, &[("last-event-id", "nonsense")], b"").problem(400, "bad-event-id");
        scene.get(&format!("{events}?from=x")).problem(400, "bad-from");
        scene.get(&format!("{events}?form=1")).problem(400, "bad-query");
        scene.ask("GET", events, &[("accept", "text/html")], b"").problem(406, "not-acceptable");
        scene.get("/messages/count/999/events").problem(404, "unknown-message");
        scene.get("/messages/count/999").problem(404, "unknown-message");
        scene.get("/messages/count/0").problem(400, "bad-id");
        scene.get("/messages/count/x").problem(400, "bad-id");
    });
}

#[test]
fn lines_of_one_request_are_messages_and_no_jobs() {
    let scene = Scene::new();
    assert_eq!(scene.ask("POST", "/push/q", &[NDJSON], b"1\n2\n").status, 202);
    scene.get("/messages/q/1").problem(404, "unknown-message");
}

#[test]
fn a_job_that_waits_says_how_many_nodes_work_for_its_queue() {
    let scene = Scene::new();
    assert_eq!(scene.push("reszie", b"1").status, 202);
    let message = scene.get("/messages/reszie/1").json();
    assert_eq!((&message["state"], &message["nodes"]), (&json!("ready"), &json!(0)));
    // Cancelling is a mark: somebody must come by.
    let marked = scene.ask("DELETE", "/messages/reszie/1", &[], b"");
    assert_eq!(
        (marked.status, &marked.json()["state"], &marked.json()["nodes"]),
        (202, &json!("cancelling"), &json!(0))
    );
    scene.work(scene.fleet.node().handler("reszie", async |_: u64, _: Context| Ok(Done::default())));
    until("a node came by", || scene.get("/messages/reszie/1").json()["state"] == "cancelled");
    assert!(scene.get("/messages/reszie/1").json().get("nodes").is_none());
}

#[test]
fn an_answer_is_waited_for_as_long_as_its_caller_prefers() {
    on_each_store(|scene| {
        let lets = Arc::new(Semaphore::new(0));
        counts(scene, &lets);
        let push = |body: &[u8], prefer: &str| scene.ask("POST", "/push/count", &[JSON, ("prefer", prefer)], body);
        let done = push(b"0", "wait=30");
        assert_eq!((done.status, done.header("preference-applied")), (200, Some("wait=30")));
        assert_eq!((&done.json()["state"], &done.json()["result"]), (&json!("done"), &json!(0)));
        assert_eq!(done.message().unwrap(), "/messages/count/1");
        let not_yet = push(b"1", "respond-async, wait=1");
        assert_eq!((not_yet.status, not_yet.message().unwrap().as_str()), (202, "/messages/count/2"));
        assert!(not_yet.header("retry-after").is_some());
        lets.add_permits(14);
        let dead = push(b"13", "wait=999");
        assert_eq!((dead.status, dead.header("preference-applied")), (200, Some("wait=60")));
        assert_eq!((&dead.json()["state"], &dead.json()["error"]), (&json!("failed"), &json!("unlucky")));
        let (_, mut peer) = scene.open("GET", "/messages/count/3/events?from=14", &[SSE], b"");
        assert!(peer.rest().ends_with("event: error\ndata: {\"message\":\"unlucky\"}\n\n"));
    });
}

#[test]
fn a_job_is_cancelled_while_it_waits_and_while_it_runs_and_what_has_ended_stays() {
    on_each_store(|scene| {
        let lets = Arc::new(Semaphore::new(0));
        let (_, mut waits) = scene.open("POST", "/call/count", &[JSON, SSE], b"5");
        let answer = scene.ask("DELETE", "/messages/count/1", &[], b"");
        assert_eq!(answer.status, 202, "{}", answer.text());
        counts(scene, &lets);
        assert!(waits.rest().ends_with("event: cancelled\ndata: null\n\n"));
        assert_eq!(scene.get("/messages/count/1").json()["state"], "cancelled");
        let (_, mut runs) = scene.open("POST", "/call/count", &[JSON, SSE], b"5");
        lets.add_permits(1);
        runs.streamed("data: 1\n\n");
        assert_eq!(scene.ask("DELETE", "/messages/count/2", &[], b"").status, 202);
        assert!(runs.rest().ends_with("event: cancelled\ndata: null\n\n"));
        let ended = scene.ask("DELETE", "/messages/count/2", &[], b"");
        assert_eq!((ended.status, &ended.json()["state"]), (200, &json!("cancelled")));
        scene.ask("DELETE", "/messages/count/77", &[], b"").problem(404, "unknown-message");
    });
}

#[test]
fn a_job_put_off_for_an_hour_ends_when_it_is_cancelled() {
    on_each_store(|scene| {
        scene.work(scene.fleet.node().handler("later", async |_: u64, _: Context| {
            Err::<Done, _>(Failure::retry_after(Duration::from_secs(3600), "not yet"))
        }));
        let (_, mut follows) = scene.open("POST", "/call/later", &[JSON, SSE], b"1");
        until("it is put off", || scene.get("/messages/later/1").json()["state"] == "delayed");
        let answer = scene.ask("DELETE", "/messages/later/1", &[], b"");
        assert_eq!((answer.status, &answer.json()["state"]), (202, &json!("cancelled")));
        assert!(follows.rest().ends_with("event: cancelled\ndata: null\n\n"));
    });
}

#[test]
fn equal_calls_are_one_job_if_they_ask_for_it_and_who_joins_late_reads_from_the_first_event() {
    on_each_store(|scene| {
        let lets = Arc::new(Semaphore::new(1));
        counts(scene, &lets);
        let share = [JSON, SSE, ("baton-share", "1")];
        let (one, mut first) = scene.open("POST", "/call/count", &share, b"2");
        first.streamed("data: 1\n\n");
        let (two, mut second) = scene.open("POST", "/call/count", &share, b"2");
        let (other, _) = scene.open("POST", "/call/count", &[JSON, SSE], b"2");
        assert_eq!(one.header("location"), two.header("location"));
        assert_ne!(one.header("location"), other.header("location"));
        second.streamed("data: 1\n\n");
        lets.add_permits(3);
        assert!(
            first.rest().ends_with("event: end\ndata: 2\n\n") && second.rest().ends_with("event: end\ndata: 2\n\n")
        );
        let (next, _) = scene.open("POST", "/call/count", &share, b"2");
        assert_ne!(next.header("location"), one.header("location"));
        let both = [JSON, ("baton-share", "1"), ("idempotency-key", "k")];
        scene.ask("POST", "/call/count", &both, b"2").problem(400, "bad-share");
        scene.ask("POST", "/call/count", &[JSON, ("baton-share", "yes")], b"2").problem(400, "bad-share");
        scene.ask("POST", "/call/count", &[NDJSON], b"2\n").problem(415, "media-type");
        scene.ask("POST", "/call/count", &[JSON, ("accept", "image/png")], b"2").problem(406, "not-acceptable");
    });
}

#[test]
fn equal_pushes_are_one_message_if_they_ask_for_it_and_other_uses_of_the_header_are_refused() {
    on_each_store(|scene| {
        let push =
            |share: &[(&str, &str)], body: &[u8]| scene.ask("POST", "/push/count", &[&[JSON], share].concat(), body);
        let share = [("baton-share", "1")];
        let one = push(&share, b"0");
        assert_eq!(one.status, 202, "{one:?}");
        assert_eq!(push(&share, b"0").header("location"), one.header("location"));
        assert_ne!(push(&share, b"1").header("location"), one.header("location"));
        assert_ne!(push(&[], b"0").header("location"), one.header("location"));
        counts(scene, &Arc::new(Semaphore::new(0)));
        let joined = push(&[("baton-share", "1"), ("prefer", "wait=30")], b"0");
        assert_eq!(joined.status, 200, "{joined:?}");
        push(&[("baton-share", "yes")], b"0").problem(400, "bad-share");
        push(&[("baton-share", "1"), ("idempotency-key", "k")], b"0").problem(400, "bad-share");
        push(&[("baton-linger", "1")], b"0").problem(400, "bad-linger");
        let lines = scene.ask("POST", "/push/count", &[NDJSON, ("baton-share", "1")], b"0\n").problem(400, "bad-share");
        assert!(lines["detail"].as_str().unwrap().contains("is for one message"), "{lines}");
    });
}

#[test]
fn a_call_that_asked_for_it_is_cancelled_when_nobody_follows_it_any_more() {
    on_each_store(|scene| {
        counts(scene, &Arc::new(Semaphore::new(0)));
        let (_, lingers) = scene.open("POST", "/call/count", &[JSON, SSE, ("baton-linger", "1")], b"9");
        let (_, stays) = scene.open("POST", "/call/count", &[JSON, SSE], b"9");
        until("both run", || {
            (1..=2).all(|id| scene.get(&format!("/messages/count/{id}")).json()["state"] == "in-flight")
        });
        drop((lingers, stays));
        until("it is cancelled", || scene.get("/messages/count/1").json()["state"] == "cancelled");
        assert_eq!(scene.get("/messages/count/2").json()["state"], "in-flight");
    });
}

#[test]
fn events_that_are_not_kept_any_more_are_gone_or_a_gap() {
    let scene = Scene::new();
    let node = scene.fleet.node().handler("flood", async |count: u64, context: Context| {
        let much = "x".repeat(60_000);
        for _ in 0..count {
            context.emit("much", &much).await?;
        }
        Ok(Done::default())
    });
    scene.work(node);
    let headers = [JSON, ("idempotency-key", "flood"), ("prefer", "wait=60")];
    assert_eq!(scene.ask("POST", "/push/flood", &headers, b"200").status, 200);
    let first = scene.get("/messages/flood/1").json()["first_event"].as_u64().unwrap();
    assert!(first > 1);
    let gone = scene.get("/messages/flood/1/events").problem(410, "events-gone");
    assert_eq!(gone["first"], first);
    // Who calls again under its key is told where it goes on.
    let (_, mut again) = scene.open("POST", "/call/flood", &[JSON, SSE, ("idempotency-key", "flood")], b"200");
    let told = again.streamed("event: much");
    assert!(told.contains(&format!("event: gap\ndata: {{\"next\":{first}}}\n\n")), "{}", &told[..200]);
    assert!(again.rest().ends_with("event: end\ndata: null\n\n"));
    // One who does not read holds up nobody who does.
    let (_, mut slow) = scene.open("POST", "/call/flood", &[JSON, SSE], b"400");
    let (_, mut quick) = scene.open("GET", "/messages/flood/2/events", &[SSE], b"");
    assert_eq!(quick.rest().matches("event: much").count(), 400);
    let read = slow.rest();
    assert!(read.contains("event: gap") && read.ends_with("event: end\ndata: null\n\n"), "{}", read.len());
}

#[test]
fn a_stop_is_told_to_streams_first() {
    let mut scene = Scene::new();
    counts(&scene, &Arc::new(Semaphore::new(1)));
    let (_, mut events) = scene.open("POST", "/call/count", &[JSON, SSE], b"9");
    let (_, mut lines) = scene.open("GET", "/messages/count/1/events", &[("accept", "application/x-ndjson")], b"");
    events.streamed("data: 1\n\n");
    lines.streamed("\"data\":1}\n");
    scene.shutdown.graceful();
    assert_eq!(events.rest(), ": the gateway stops; connect again\n\n");
    assert_eq!(lines.rest(), "{\"event\":\"closing\",\"data\":{\"next\":2}}\n");
    assert!(events.closes() < Duration::from_secs(2));
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
}

#[test]
fn one_who_reads_nothing_is_cut_off() {
    let scene = Scene::with(|options| options.limits.stall_time = Duration::from_millis(500));
    let node = scene.fleet.node().handler("flood", async |(): (), context: Context| {
        let much = "x".repeat(60_000);
        loop {
            context.emit("much", &much).await?;
        }
    });
    scene.work(node);
    let (_, reads_nothing) = scene.open("POST", "/call/flood", &[JSON, SSE, ("baton-linger", "1")], b"null");
    until("its call is forsaken", || scene.get("/messages/flood/1").json()["state"] == "cancelled");
    drop(reads_nothing);
}

/// A gateway with room for 15 streams, of which so many are taken.
fn streaming(taken: usize) -> (Scene, Vec<Peer>) {
    let scene = Scene::with(|options| options.limits.connections = 16);
    let opened = || {
        let (head, peer) = scene.open("POST", "/call/count", &[JSON], b"1");
        assert_eq!(head.status, 200);
        peer
    };
    let streams = (0..taken).map(|_| opened()).collect();
    (scene, streams)
}

#[test]
fn a_call_that_finds_no_room_to_stream_is_not_stored() {
    let (scene, _streams) = streaming(15);
    for (method, path, body) in [("POST", "/call/count", &b"1"[..]), ("GET", SEARCH, b"")] {
        let (head, _) = scene.open(method, path, &[JSON], body);
        assert_eq!(head.status, 503, "{path}");
    }
    assert_eq!((scene.ready("count"), scene.ready("subset-sum")), (15, 0));
}

#[test]
fn a_call_that_is_refused_gives_its_room_to_stream_back() {
    let (scene, mut streams) = streaming(14);
    let with_key = |body: &[u8]| scene.open("POST", "/call/count", &[JSON, ("idempotency-key", "k")], body);
    let (head, first) = with_key(b"1");
    assert_eq!(head.status, 200);
    drop((first, streams.pop()));
    until("a stream has ended", || with_key(b"2").0.status == 422);
    for _ in 0..4 {
        assert_eq!(with_key(b"2").0.status, 422);
    }
    assert_eq!(with_key(b"1").0.status, 200);
}
