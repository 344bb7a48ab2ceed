//! A queue is emptied, or forgotten; what is in flight and what has failed stays unless it is meant.

mod sandbox;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::{Value, json};

/// The same on a file and on a server.
fn on_both(test: impl Fn(&Sandbox)) {
    test(&Sandbox::new());
    let server = RedisServer::start(Persistence::None);
    test(&Sandbox::on(&server));
}

fn audit(sandbox: &Sandbox) -> Value {
    sandbox.run(&["audit", "--deep", "--json"]).expect(0).json()
}

#[test]
fn a_queue_is_emptied_and_nothing_else() {
    on_both(|sandbox| {
        sandbox.run(&["push", "mail", "1", "2", "3"]).expect(0);
        sandbox.run(&["push", "other", "1"]).expect(0);
        let unasked = sandbox.run(&["purge", "mail"]).expect(2);
        assert!(unasked.one_line().contains("there is no terminal to ask at; add --yes"), "{}", unasked.err);
        let dry = sandbox.run(&["purge", "mail", "--dry-run", "--json"]).expect(0).json();
        assert_eq!(dry, json!({"queue": "mail", "would_remove": 3, "in_flight": 0, "failed": 0}));
        assert_eq!(audit(sandbox)["ready"], 4);
        let purged = sandbox.run(&["purge", "mail", "--yes", "--json"]).expect(0).json();
        assert_eq!(purged, json!({"queue": "mail", "removed": 3, "in_flight": 0, "failed": 0}));
        let again = sandbox.run(&["purge", "mail", "--yes"]).expect(0);
        assert_eq!(again.out, "removed 0 waiting messages of queue mail\n");
        let books = audit(sandbox);
        assert_eq!((&books["ready"], &books["removed"]), (&json!(1), &json!(3)));
    });
}

#[test]
fn a_mistyped_queue_is_named_with_the_one_that_was_meant() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "mail", "1"]).expect(0);
    sandbox.run(&["push", "resize", "1"]).expect(0);
    for more in [&["--yes"][..], &["--yes", "--remove"], &["--dry-run"]] {
        let ran = sandbox.run(&[&["purge", "mial"][..], more].concat()).expect(1);
        let line = "baton: there is no queue mial in this fleet (there are: mail, resize); did you mean mail?";
        assert_eq!(ran.one_line(), line);
    }
    let ran = sandbox.run(&["purge", "zebra", "--yes"]).expect(1);
    assert!(ran.one_line().ends_with("name one that is there"), "{}", ran.err);
}

#[test]
fn a_removed_queue_is_forgotten_and_its_ids_go_on() {
    on_both(|sandbox| {
        sandbox.run(&["push", "mail", "1", "2"]).expect(0);
        let node = sandbox.start(&["node", "--role", "worker", "--handler", "noop", "--queue", "mail"]);
        until("both are done", || sandbox.count("mail", "done") == 2);
        let refused = sandbox.run(&["purge", "mail", "--remove", "--yes"]).expect(1);
        let who = format!("/{}; stop the nodes first, with `baton stop`", node.pid());
        let line = refused.one_line();
        assert!(line.starts_with("baton: queue mail is in use by ") && line.ends_with(&who), "{line}");
        sandbox.run(&["stop"]).expect(0);
        sandbox.run(&["push", "mail", "3"]).expect(0);
        let removed = sandbox.run(&["purge", "mail", "--remove", "--yes", "--json"]).expect(0).json();
        assert_eq!(removed, json!({"queue": "mail", "removed": 1, "failed": 0, "sources": []}));
        assert_eq!(sandbox.status()["queues"], json!([]));
        let pushed = sandbox.run(&["push", "mail", "4", "--json"]).expect(0).json();
        assert_eq!(pushed["first_id"], 4, "ids do not repeat");
        let books = audit(sandbox);
        assert_eq!((&books["pushed"], &books["ready"], &books["removed"]), (&json!(4), &json!(1), &json!(3)));
    });
}

/// Its lines would count as read before, and a run over them would do nothing.
#[test]
fn a_removal_names_the_sources_that_keep_their_places() {
    let sandbox = Sandbox::new();
    sandbox.write("names.txt", "a\nb\n");
    let up = ["up", "-q", "--handler", "noop", "--queue", "q", "--lines", "names.txt", "--source", "n", "--until-done"];
    let remove = ["purge", "q", "--remove", "--yes"];
    sandbox.run(&up).expect(0);
    let removed = sandbox.run(&remove).expect(0);
    let said = "baton: source n feeds queue q and keeps its place; `baton source remove n` starts it over, or --rewind \
                where it runs";
    assert_eq!(removed.one_line(), said);
    sandbox.run(&["push", "q", "1"]).expect(0);
    let removed = sandbox.run(&[&remove[..], &["--json"]].concat()).expect(0).json();
    assert_eq!(removed["sources"], json!(["n"]));
    sandbox.run(&["source", "remove", "n"]).expect(0);
    sandbox.run(&up).expect(0);
    assert_eq!(sandbox.count("q", "done"), 2);
}

/// Whenever a purge is killed, the books balance, and the next one removes the rest.
#[test]
fn a_purge_that_is_killed_is_finished_by_the_next() {
    on_both(|sandbox| {
        let lines: String = (0..3_000).map(|nth| format!("{nth}\n")).collect();
        for round in 1..=4 {
            sandbox.run_with(&["push", "mail", "-"], lines.as_bytes()).expect(0);
            let mut purge = sandbox.command(&["purge", "mail", "--yes"]).spawn().unwrap();
            if round > 1 {
                // As soon as something was removed; it may have come to its end by then.
                until("it has begun", || audit(sandbox)["removed"].as_u64() > Some((round - 1) * 3_000));
            }
            purge.kill().unwrap();
            purge.wait().unwrap();
            audit(sandbox);
            sandbox.run(&["purge", "mail", "--yes"]).expect(0);
            let books = audit(sandbox);
            assert_eq!((&books["ready"], &books["removed"]), (&json!(0), &json!(round * 3_000)));
        }
    });
}
