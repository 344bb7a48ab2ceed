//! Subset sums as the gateway asks the fleet for them.

mod scene;

use std::{sync::Arc, time::Duration};

use baton::{Context, Done, Failure};
use scene::{SSE, Scene, until};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const SEARCH: &str = "/subsetSum?data=%5B1,2,-3%5D&sum=0";

/// One who tells two matches, each when it is let.
fn searches(scene: &Scene, lets: &Arc<Semaphore>) {
    let lets = Arc::clone(lets);
    let node = scene.fleet.node().handler("subset-sum", move |task: Value, context: Context| {
        let lets = Arc::clone(&lets);
        async move {
            for key in ["3", "7"] {
                lets.acquire().await.map_err(Failure::new)?.forget();
                context.emit_keyed(key, "match", &task.get("data")).await?;
            }
            Ok(Done::with(&json!({"count": 2, "complete": true}))?)
        }
    });
    scene.work(node);
}

#[test]
fn matches_are_lines_as_they_are_found_or_events() {
    let scene = Scene::new();
    let lets = Arc::new(Semaphore::new(0));
    searches(&scene, &lets);
    let (head, mut lines) = scene.open("GET", SEARCH, &[], b"");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert_eq!(head.message().unwrap(), "/messages/subset-sum/1");
    lets.add_permits(1);
    assert_eq!(lines.streamed("\n"), "Match: [1,2,-3]\n");
    lets.add_permits(1);
    assert_eq!(lines.rest(), "Match: [1,2,-3]\n");
    lets.add_permits(2);
    let (_, mut events) = scene.open("GET", SEARCH, &[SSE], b"");
    let told = events.rest();
    assert!(told.contains("id: subset-sum/2:1\nevent: match\ndata: [1,2,-3]\n\n"), "{told}");
    assert!(told.ends_with("event: end\ndata: {\"complete\":true,\"count\":2}\n\n"), "{told}");
    lets.add_permits(2);
    let (head, mut lines) = scene.open("GET", SEARCH, &[("accept", "application/json")], b"");
    assert_eq!(head.header("content-type"), Some("application/x-ndjson"));
    assert!(lines.rest().starts_with("{\"number\":1,\"event\":\"match\",\"data\":[1,2,-3]}\n"));
    // A browser that comes again goes on with its search.
    let again = [SSE, ("last-event-id", "subset-sum/2:1")];
    let (head, mut events) = scene.open("GET", SEARCH, &again, b"");
    assert_eq!(head.message().unwrap(), "/messages/subset-sum/2");
    assert!(events.rest().contains("id: subset-sum/2:2\n"));
    let over = [SSE, ("last-event-id", "subset-sum/2:3")];
    assert_eq!(scene.ask("GET", SEARCH, &over, b"").status, 204);
    scene.ask("GET", SEARCH, &[("last-event-id", "other/2:3")], b"").problem(400, "bad-event-id");
    scene.get("/messages/subset-sum/4").problem(404, "unknown-message");
}

#[test]
fn what_is_missing_or_malformed_is_said_and_nothing_is_begun() {
    let scene = Scene::new();
    for query in [
        "",
        "?",
        "?data=[1]",
        "?sum=1",
        "?data=x&sum=1",
        "?data=%5B1%5D&sum=x",
        "?data=%5B1%5D&sum=1&mode=x",
        "?data=%zz&sum=1",
    ] {
        let problem = scene.get(&format!("/subsetSum{query}"));
        problem.problem(400, "bad-query");
    }
    let mut peer = scene.peer();
    peer.send(&scene::request("HEAD", SEARCH, &[], b""));
    let head = peer.head();
    assert_eq!((head.status, head.header("allow")), (405, Some("GET")));
    assert_eq!(scene.ready("subset-sum"), 0);
}

#[test]
fn what_would_take_too_long_is_refused_before_it_is_begun_with_a_way_that_can_be_gone() {
    let scene = Scene::new();
    let numbers: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    let search = format!("/subsetSum?data=%5B{}%5D&sum=900", numbers.join(","));
    for mode in ["", "&mode=fleet"] {
        let refused = scene.get(&format!("{search}{mode}")).problem(422, "too-long");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("limit=1000") && detail.contains("count_only=true"), "{detail}");
    }
    assert_eq!(scene.ready("subset-sum"), 0);
    scene.work(scene.fleet.node().handler("subset-sum", async |task: Value, _: Context| {
        Ok(Done::with(&json!({"count": task["limit"], "complete": false}))?)
    }));
    assert_eq!(scene.get(&format!("{search}&limit=1000")).status, 200);
    let counted = scene.get(&format!("{search}&limit=7&count_only=true"));
    assert_eq!(counted.text(), "Count: 7\n");
}

#[test]
fn a_search_whose_reader_cannot_come_again_is_cancelled_when_it_leaves() {
    let scene = Scene::new();
    let lets = Arc::new(Semaphore::new(1));
    searches(&scene, &lets);
    let (_, mut lines) = scene.open("GET", SEARCH, &[], b"");
    lines.streamed("Match");
    drop(lines);
    until("it is cancelled", || scene.get("/messages/subset-sum/1").json()["state"] == "cancelled");
}

/// A search of many seconds with hardly a match.
fn long() -> String {
    let mut state = 1_u64;
    let numbers = (0..56).map(|nth| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{}{}", if nth % 2 == 0 { "" } else { "-" }, state >> 4)
    });
    format!("/subsetSum?data=%5B{}%5D&sum=7&mode=interleaved", numbers.collect::<Vec<_>>().join(","))
}

#[test]
fn an_interleaved_search_runs_in_the_gateway_itself() {
    let scene = Scene::new();
    let search = format!("{SEARCH}&mode=interleaved");
    assert_eq!(scene.get(&search).text(), "Match: [1,2,-3]\n");
    assert_eq!(scene.get(&format!("{search}&count_only=true")).text(), "Count: 1\n");
    let several = "/subsetSum?data=%5B1,1,1%5D&sum=1&mode=interleaved&limit=2";
    let lines = scene.ask("GET", several, &[("accept", "application/x-ndjson")], b"");
    let (found, end) =
        ("{\"event\":\"match\",\"data\":[1]}\n", "{\"event\":\"end\",\"data\":{\"count\":2,\"complete\":false}}\n");
    assert_eq!(lines.text(), format!("{found}{found}{end}"));
    let (_, mut events) = scene.open("GET", &search, &[SSE], b"");
    let told = events.rest();
    assert!(told.contains("\n\nevent: match\ndata: [1,2,-3]\n\nevent: end\ndata: {\"count\":1"), "{told}");
    let many: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    let refused = scene.get(&format!("/subsetSum?data=%5B{}%5D&sum=900&mode=interleaved", many.join(",")));
    refused.problem(422, "too-long");
    assert_eq!(scene.ready("subset-sum"), 0, "no worker is asked");
}

/// The most memory that this process had, in MiB.
#[cfg(target_os = "linux")]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// A problem takes some 15 MiB to be made ready. Its caller has gone by then, and no place may be free before its memory is.
#[cfg(target_os = "linux")]
#[test]
fn callers_who_leave_at_once_leave_no_work_and_no_memory_behind() {
    let scene = Scene::new();
    let search = long();
    let whole = search.replace("&mode=interleaved", "");
    let before = peak();
    for nth in 0..120 {
        let mut peer = scene.peer();
        peer.send(&scene::request("GET", if nth % 2 == 0 { &search } else { &whole }, &[], b""));
        // Long enough for most requests to begin, and for none to be answered; then the connection is reset.
        std::thread::sleep(Duration::from_millis(2));
        rustix::net::sockopt::set_socket_linger(&peer.stream, Some(Duration::ZERO)).unwrap();
    }
    until("there is room", || scene.open("GET", &search, &[], b"").0.status == 200);
    let more = peak() - before;
    assert!(more < 400, "{more} MiB");
}

#[test]
fn others_have_their_turn_while_the_gateway_searches() {
    let scene = Scene::with(|options| options.limits.searches = 2);
    let mut searches: Vec<_> = (0..2).map(|_| scene.open("GET", &long(), &[], b"")).collect();
    assert!(searches.iter().all(|(head, _)| head.status == 200));
    for _ in 0..20 {
        assert_eq!(scene.get("/health").status, 200);
    }
    scene.get(&long()).problem(503, "busy");
    // A reader that leaves ends its search.
    drop(searches.pop());
    until("there is room", || scene.open("GET", &long(), &[], b"").0.status == 200);
}

#[test]
fn a_search_that_takes_too_long_ends_with_an_error() {
    let scene = Scene::with(|options| options.limits.search_time = Duration::from_millis(300));
    assert!(scene.get(&long()).text().contains("Error: the search was not finished after 300ms"));
    // So does one that no worker takes up, which is then cancelled.
    let (_, mut events) = scene.open("GET", SEARCH, &[SSE], b"");
    let told = events.rest();
    assert!(told.contains("event: error\n") && told.contains("not finished after 300ms"), "{told}");
    until("it is cancelled", || scene.get("/messages/subset-sum/1").json()["state"] == "cancelling");
}
