//! Errors: looked at, requeued, removed, grouped, and never lost to a reader that goes away.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::process::Stdio;

use sandbox::{Ran, Sandbox, until};
use serde_json::{Value, json};

fn entries(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(ran: &Ran) -> Vec<u64> {
    entries(ran).iter().map(|entry| entry["id"].as_u64().unwrap()).collect()
}

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.failed(
        "a",
        &[("{\"n\":\n1}", "timed out after 15 ms"), ("2", "timed out after 7 ms"), ("3", "no \u{1b}[31mdisk")],
    );
    sandbox.failed("b", &[("\"four\"", "boom\nat line 1")]);
    sandbox
}

#[test]
fn errors_are_listed_and_removed_only_on_demand() {
    let sandbox = prepared();
    for _ in 0..2 {
        assert_eq!(ids(&sandbox.run(&["errors", "--json"]).expect(0)), [1, 2, 3, 1]);
        assert!(sandbox.run(&["errors"]).expect(0).one_line().contains("4 errors; --remove removes"));
    }
    let human = sandbox.run(&["errors", "a"]).expect(0);
    assert!(human.out.contains("a/3") && human.out.contains("error: no \\u{1b}[31mdisk"), "{}", human.out);
    let ran = sandbox.run(&["--getErrors", "--json"]).expect(0);
    let found = entries(&ran);
    assert_eq!(found[0]["body"], json!({"n": 1}));
    assert_eq!(found[3]["body"], json!("four"));
    assert_eq!((&found[3]["queue"], &found[3]["error"]), (&json!("b"), &json!("boom\nat line 1")));
    assert_eq!((&found[0]["attempts"], &found[0]["crashes"]), (&json!(1), &json!(0)));
    assert!(found[0]["at"].as_u64().unwrap() > 1_600_000_000_000 && found[0]["node"].as_str().unwrap().contains('/'));
    let books = sandbox.run(&["audit", "--json", "--deep"]).expect(0).json();
    assert_eq!((&books["failed"], &books["removed"], &books["balanced"]), (&json!(0), &json!(4), &json!(true)));
    let none = sandbox.run(&["errors"]).expect(0);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "baton: no errors\n"));
    assert_eq!(sandbox.run(&["errors", "--json"]).expect(0).err, "");
    assert_eq!(sandbox.run(&["errors", "--remove", "--json"]).expect(0).err, "");
}

#[test]
fn what_is_left_out_is_told_and_a_queue_nobody_has_is_refused() {
    let sandbox = prepared();
    let told = |arguments: &[&str]| sandbox.run(arguments).expect(0).err;
    assert!(told(&["errors", "--limit", "3"]).contains("baton: 3 of 4 errors; --remove"));
    assert!(told(&["errors", "--match", "timed out", "a"]).contains("baton: 2 of 3 errors; --remove"));
    for how in [&[][..], &["--group"], &["--remove"]] {
        let none = [&["errors", "--match", "no such text"][..], how].concat();
        assert_eq!(told(&none), "baton: none of 4 errors matches\n");
    }
    let audits = [&["audit"][..], &["audit", "--deep"], &["stats", "--seconds", "10ms"]];
    for command in [&["errors"][..], &["errors", "--json"], &["errors", "--group"]].into_iter().chain(audits) {
        let refused = sandbox.run(&[command, &["wrk"]].concat()).expect(1);
        let line = "baton: there is no queue wrk in this fleet (there are: a, b); name one that is there";
        assert_eq!((refused.one_line(), refused.out.as_str()), (line, ""), "{command:?}");
    }
    assert_eq!(told(&["errors", "--remove", "--limit", "1"]), "baton: removed 1 of 4 errors\n");
    // A queue that is there and has none is no mistake.
    sandbox.run(&["push", "wrk", "1"]).expect(0);
    assert_eq!(told(&["errors", "wrk"]), "baton: no errors\n");
}

#[test]
fn make_errors_prints_and_removes_them() {
    let sandbox = prepared();
    let (root, program) = (concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), env!("CARGO_BIN_EXE_baton"));
    let mut make = std::process::Command::new("make");
    make.args(["-s", "-C", root, "errors", "ARGS=--json"]);
    make.arg(format!("BATON={program}")).arg(format!("STORE=sqlite:{}", sandbox.path().display()));
    let ran = make.env_remove("MAKEFLAGS").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), 4);
    assert_eq!(sandbox.run(&["audit", "--json"]).expect(0).json()["removed"], 4);
}

#[test]
fn requeue_says_how_many() {
    let sandbox = prepared();
    let ran = sandbox.run(&["errors", "--match", "timed out", "--requeue", "--json"]).expect(0);
    assert_eq!((ids(&ran), ran.err.as_str()), (vec![1, 2], "baton: requeued 2 messages\n"));
    let ran = sandbox.run(&["errors", "b", "--requeue"]).expect(0);
    let unworked = format!("baton: no node works for queue b in {}\n", sandbox.url());
    assert_eq!(ran.err, format!("baton: requeued 1 message\n{unworked}"));
    assert_eq!(sandbox.run(&["errors", "b", "--requeue"]).expect(0).err, "baton: no errors\n");
    let books = sandbox.run(&["audit", "--json", "--deep"]).expect(0).json();
    assert_eq!((&books["ready"], &books["failed"], &books["requeued"]), (&json!(3), &json!(1), &json!(3)));
}

#[test]
fn errors_are_chosen_by_id_and_by_a_cause_as_it_is_grouped() {
    let sandbox = prepared();
    let which = sandbox.run(&["errors", "--id", "1", "--requeue"]).expect(1);
    let line = "baton: an id is one of a queue, and several have errors (there are: a, b); name one, as in `baton errors QUEUE`";
    assert_eq!(which.one_line(), line);
    let chosen = |more: &[&str]| sandbox.run(&[&["errors", "a", "--json"], more].concat()).expect(0);
    assert_eq!(ids(&chosen(&["--id", "3", "--id", "1"])), [1, 3]);
    assert_eq!(ids(&chosen(&["--match", "timed out after # ms"])), [1, 2]);
    assert_eq!(chosen(&["--id", "3", "--requeue"]).err, "baton: requeued 1 message\n");
    assert_eq!(ids(&chosen(&["--id", "1", "--remove"])), [1]);
    sandbox.run(&["errors", "a", "--remove"]).expect(0);
    assert_eq!(ids(&sandbox.run(&["errors", "--id", "1", "--json"]).expect(0)), [1], "only b has errors by now");
}

#[test]
fn nothing_to_requeue_is_told_as_nothing_to_list_is() {
    let sandbox = prepared();
    for action in [&["--requeue"][..], &["--remove"], &[]] {
        let ran = sandbox.run(&[&["errors", "--match", "nothing"], action].concat()).expect(0);
        assert_eq!(ran.err, "baton: none of 4 errors matches\n", "{action:?}");
    }
}

#[test]
fn filters_remove_only_what_they_let_through() {
    let sandbox = prepared();
    let one = ["errors", "--remove", "--json", "--match", "timed out", "--limit", "1"];
    assert_eq!(ids(&sandbox.run(&one).expect(0)), [1]);
    assert_eq!(ids(&sandbox.run(&["errors", "--json", "--match", "timed out", "--requeue"]).expect(0)), [2]);
    let books = sandbox.run(&["audit", "--json", "a", "--deep"]).expect(0).json();
    assert_eq!(
        (&books["ready"], &books["failed"], &books["removed"], &books["requeued"]),
        (&json!(1), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!(ids(&sandbox.run(&["errors", "--remove", "--json", "b"]).expect(0)), [1]);
    assert_eq!(ids(&sandbox.run(&["errors", "--remove", "--json"]).expect(0)), [3]);
}

#[test]
fn causes_are_grouped() {
    let sandbox = prepared();
    let groups = sandbox.run(&["errors", "--group", "--json"]).expect(0).json();
    assert_eq!(groups["failed"], 4);
    assert_eq!(
        groups["groups"][0],
        json!({"cause": "timed out after # ms", "count": 2, "queue": "a", "example_id": 1})
    );
    let human = sandbox.run(&["errors", "--group"]).expect(0).out;
    assert!(human.contains("timed out after # ms") && !human.contains('\u{1b}'), "{human}");
    assert_eq!(sandbox.run(&["audit", "--json"]).expect(0).json()["failed"], 4);
}

#[test]
fn errors_that_nobody_reads_are_not_removed() {
    let sandbox = prepared();
    let mut child = sandbox.command(&["errors", "--remove", "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let full =
        sandbox.command(&["errors", "--remove"]).stdout(std::fs::File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(full.status.code(), Some(1));
    assert_eq!(sandbox.run(&["audit", "--json"]).expect(0).json()["failed"], 4);
}

#[test]
fn a_follower_gets_later_errors_and_ends_by_a_signal() {
    let sandbox = Sandbox::new();
    sandbox.failed("a", &[("1", "x")]);
    let out = sandbox.dir.path().join("out");
    let file = std::fs::File::create(&out).unwrap();
    let follow = ["errors", "--remove", "--follow", "--json"];
    let mut child = sandbox.command(&follow).stdout(Stdio::from(file)).spawn().unwrap();
    let seen = || std::fs::read_to_string(&out).unwrap().lines().count();
    until("the first error is printed", || seen() == 1);
    sandbox.failed("a", &[("2", "y")]);
    until("the second error is printed", || seen() == 2);
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let books = sandbox.run(&["audit", "--json"]).expect(0).json();
    assert_eq!(books["removed"], 2);
}

#[test]
fn a_follower_that_does_not_remove_sees_each_error_once_and_leaves_it() {
    let sandbox = prepared();
    let out = sandbox.dir.path().join("out");
    let file = std::fs::File::create(&out).unwrap();
    let mut child = sandbox.command(&["errors", "--follow", "--json"]).stdout(Stdio::from(file)).spawn().unwrap();
    let seen = || std::fs::read_to_string(&out).unwrap().lines().count();
    until("those there are printed", || seen() == 4);
    sandbox.failed("a", &[("5", "y")]);
    until("the new one is printed", || seen() == 5);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((seen(), sandbox.run(&["audit", "--json"]).expect(0).json()["failed"].as_u64()), (5, Some(5)));
}

#[test]
fn a_drainer_that_died_is_taken_over_and_a_live_one_is_named() {
    let sandbox = prepared();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let queue = baton::Name::new("b").unwrap();
    let holder = runtime.block_on(async {
        let session = sandbox.node("b").await;
        session.begin_removal(queue).await.unwrap();
        session
    });
    let busy = sandbox.run(&["errors", "--remove", "--json", "b", "--wait", "1"]).expect(1);
    assert!(busy.one_line().contains(&format!("/{}", std::process::id())), "{}", busy.err);
    drop(holder);
    runtime.shutdown_background();
    assert_eq!(ids(&sandbox.run(&["errors", "--remove", "--json", "b"]).expect(0)), [1]);
}

#[test]
fn errors_are_not_removed_where_there_is_no_standard_output() {
    let sandbox = prepared();
    let by_shell = |redirection: &str| {
        let script = format!("exec \"$0\" errors --remove {redirection}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_baton")]).env_clear().env("HOME", sandbox.dir.path());
        command.env("BATON_STORE", format!("sqlite:{}", sandbox.path().display())).stdin(Stdio::null());
        Ran::of(command.output().unwrap())
    };
    assert!(by_shell(">&-").expect(1).one_line().contains("standard output is closed"));
    assert_eq!(ids(&sandbox.run(&["errors", "--json"]).expect(0)).len(), 4);
    by_shell(">/dev/null").expect(0);
    assert_eq!(sandbox.run(&["errors"]).expect(0).err, "baton: no errors\n");
}
