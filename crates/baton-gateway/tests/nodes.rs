//! The answer of a push says how many live nodes work for its queue.

mod scene;

use baton::{Context, Done};
use scene::{JSON, NDJSON, Scene, on_each_store, until};
use serde_json::json;

fn works(scene: &Scene, queue: &str) {
    scene.work(scene.fleet.node().handler(queue, async |_: u64, _: Context| Ok(Done::default())));
}

#[test]
fn a_push_says_how_many_live_nodes_work_for_its_queue_in_each_of_its_forms() {
    on_each_store(|scene| {
        works(scene, "mail");
        until("the node is seen", || scene.push("mail", b"1").json()["nodes"] == 1);
        let lines = scene.ask("POST", "/push/mail", &[NDJSON], b"1\n2\n");
        assert_eq!((lines.status, &lines.json()["nodes"]), (202, &json!(1)));
        let waited = scene.ask("POST", "/push/mail", &[JSON, ("prefer", "wait=30")], b"3");
        assert_eq!((waited.status, &waited.json()["nodes"]), (200, &json!(1)));
        let keyed = [JSON, ("idempotency-key", "k")];
        assert_eq!(scene.ask("POST", "/push/mail", &keyed, b"4").json()["nodes"], 1);
        // A name that nothing works for.
        assert_eq!(scene.push("mial", b"1").json()["nodes"], 0);
        assert_eq!(scene.ask("POST", "/push/mial", &[NDJSON], b"1\n").json()["nodes"], 0);
        let not_yet = scene.ask("POST", "/push/mial", &[JSON, ("prefer", "wait=1")], b"1");
        assert_eq!((not_yet.status, &not_yet.json()["nodes"]), (202, &json!(0)));
    });
}
