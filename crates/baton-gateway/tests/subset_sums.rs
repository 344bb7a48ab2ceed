//! Subset sums as the gateway asks the fleet for them.

mod scene;

use std::sync::Arc;

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
    assert_eq!(head.job().unwrap(), "/jobs/subset-sum/1");
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
    assert_eq!(head.job().unwrap(), "/jobs/subset-sum/2");
    assert!(events.rest().contains("id: subset-sum/2:2\n"));
    let over = [SSE, ("last-event-id", "subset-sum/2:3")];
    assert_eq!(scene.ask("GET", SEARCH, &over, b"").status, 204);
    scene.ask("GET", SEARCH, &[("last-event-id", "other/2:3")], b"").problem(400, "bad-event-id");
    scene.get("/jobs/subset-sum/4").problem(404, "unknown-job");
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
    until("it is cancelled", || scene.get("/jobs/subset-sum/1").json()["state"] == "cancelled");
}
