//! Pushing: ids, keys, reruns, and a push killed midway.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{
    fmt::Write as _,
    io::Write as _,
    process::Stdio,
    time::{Duration, Instant},
};

use baton::{
    Key, Name,
    store::{
        MoveBookmark, Place,
        message::{Body, Digest, ParcelBuilder, Submission},
    },
};
use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::json;

fn lines(count: u64) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "{{\"n\":{n},\"pad\":\"0123456789012345678901234567890123456789\"}}").unwrap();
    }
    text
}

#[test]
fn bodies_from_everywhere_get_consecutive_ids() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.dir.path().join("in"), "3\n\n4").unwrap();
    let ran = sandbox
        .run_with(&["push", "messages", "-1.5", "-", "\"x\"", "--file", "in", "--json"], b"1\n \n2\r\n")
        .expect(0);
    assert_eq!(ran.json()["pushed"], 6);
    assert_eq!((&ran.json()["first_id"], &ran.json()["last_id"]), (&1.into(), &6.into()));
    assert!(ran.err.starts_with("baton: a new store was made: ") && ran.err.lines().count() == 1, "{}", ran.err);
    let none = sandbox.run(&["push", "messages", "-", "--json"]).expect(0).json();
    assert_eq!((&none["pushed"], &none["first_id"]), (&0.into(), &serde_json::Value::Null));
}

#[test]
fn a_rerun_under_a_key_skips_what_was_taken() {
    let sandbox = Sandbox::new();
    let push = |input: &str| sandbox.run_with(&["push", "messages", "-", "--resume", "k", "--json"], input.as_bytes());
    let first = push(&lines(3000)).expect(0).json();
    assert_eq!((&first["pushed"], &first["duplicates"]), (&3000.into(), &0.into()));
    let again = push(&lines(3000)).expect(0).json();
    assert_eq!((&again["pushed"], &again["duplicates"]), (&0.into(), &3000.into()));
    // Blank lines and line ends do not count.
    let longer = push(&lines(4000).replace('\n', "\r\n\n")).expect(0).json();
    assert_eq!(
        (&longer["pushed"], &longer["duplicates"], &longer["first_id"]),
        (&1000.into(), &3000.into(), &3001.into())
    );
    let other = push(&lines(5000).replacen("\"n\":7,", "\"n\":8,", 1)).expect(1);
    assert!(other.one_line().contains("another name"), "{}", other.err);
    let shorter = push(&lines(10)).expect(1);
    assert!(shorter.one_line().contains("has 10 lines, but 4000"), "{}", shorter.err);
    assert!(push(&lines(1)).expect(1).one_line().contains("has 1 line, but 4000"));
    assert_eq!(sandbox.pushed(), 4000);
}

fn a_key_is_bound_to_its_queue(sandbox: &Sandbox) {
    let push = |queue: &str| sandbox.run_with(&["push", queue, "-", "--resume", "k1", "--json"], b"1\n2\n");
    assert_eq!(push("a").expect(0).json()["pushed"], 2);
    let refused = push("b").expect(1);
    let whose = "the name \"k1\" belongs to queue a, not to b: ";
    assert!(refused.one_line().contains(whose) && refused.err.contains("nothing was stored"), "{}", refused.err);
    assert_eq!(push("a").expect(0).json()["duplicates"], 2);
    assert_eq!(sandbox.pushed(), 2);
}

/// After the removal its lines are new again, also when later messages of others would be as many.
#[test]
fn a_removed_queue_takes_the_names_of_its_imports_along() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        let push = || sandbox.run_with(&["push", "a", "-", "--resume", "k1", "--json"], b"1\n2\n").expect(0).json();
        assert_eq!(push()["pushed"], 2);
        sandbox.run(&["purge", "a", "--remove", "--yes"]).expect(0);
        sandbox.run(&["push", "a", "7", "8", "9"]).expect(0);
        assert_eq!((&push()["pushed"], &push()["duplicates"]), (&json!(2), &json!(2)));
        assert_eq!(sandbox.count("a", "ready"), 5);
    }
}

#[test]
fn a_key_is_bound_to_its_queue_on_sqlite() {
    a_key_is_bound_to_its_queue(&Sandbox::new());
}

#[test]
fn a_key_is_bound_to_its_queue_on_redis() {
    let server = RedisServer::start(Persistence::None);
    a_key_is_bound_to_its_queue(&Sandbox::on(&server));
}

/// Stores `1` to `lines` as the first programs did, whose bookmarks know no queue.
fn pushed_long_ago(sandbox: &Sandbox, queue: &str, key: &str, lines: u64) {
    let (mut builder, mut digest) = (ParcelBuilder::default(), Digest::START);
    for n in 1..=lines {
        builder.add(Body::new(n.to_string().as_bytes()).unwrap()).unwrap();
        digest = digest.then(n.to_string().as_bytes());
    }
    let submission =
        Submission { queue: Name::new(queue).unwrap(), parcel: builder.finish().unwrap(), key: None, call: None };
    let mark = MoveBookmark { key: Key::new(key).unwrap(), from: Place::START, to: Place { lines, digest } };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = sandbox.node("nobody").await;
        session.submit(vec![submission], Some(mark)).await.unwrap();
        session.leave().await.unwrap();
    });
}

#[test]
fn a_bookmark_without_a_queue_goes_on_only_where_it_can_only_be_of_that_queue() {
    let sandbox = Sandbox::new();
    pushed_long_ago(&sandbox, "a", "old", 3);
    let push = |queue: &str, input: &str| {
        sandbox.run_with(&["push", queue, "-", "--resume", "old", "--json"], input.as_bytes())
    };
    push("b", "1\n2\n3\n4\n").expect(1);
    push("a", "1\n2\n5\n4\n").expect(1);
    let longer = push("a", "1\n2\n3\n4\n").expect(0).json();
    assert_eq!((&longer["pushed"], &longer["duplicates"]), (&1.into(), &3.into()));
    // From here on it is bound, and another queue of that size changes nothing.
    sandbox.run(&["push", "b", "1", "2", "3", "4", "5"]).expect(0);
    push("b", "1\n2\n3\n4\n").expect(1);
    assert_eq!(push("a", "1\n2\n3\n4\n5\n").expect(0).json()["pushed"], 1);
    // Two queues of which it may be: it cannot be told.
    pushed_long_ago(&sandbox, "a", "older", 3);
    let unclear = sandbox.run_with(&["push", "a", "-", "--resume", "older"], b"1\n2\n3\n").expect(1);
    assert!(unclear.one_line().contains("take another name"), "{}", unclear.err);
}

#[test]
fn an_interrupted_push_tells_what_is_stored_and_how_to_go_on() {
    let sandbox = Sandbox::new();
    for (queue, flags, next) in [
        ("plain", &[][..], "leave out what is stored, then push the rest"),
        ("keyed", &["--resume", "k"][..], "run the same command again to go on from there"),
    ] {
        for signal in ["-INT", "-TERM"] {
            let before = sandbox.count(queue, "ready");
            let arguments = [&["push", queue, "-"][..], flags].concat();
            let mut child = sandbox.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            // The second time, what the key has taken comes first.
            let extra = if flags.is_empty() { 0 } else { before };
            let lines: String = (0..extra + 300).map(|n| format!("{n}\n")).collect();
            stdin.write_all(lines.as_bytes()).unwrap();
            until("the lines are stored", || sandbox.count(queue, "ready") == before + 300);
            let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(sent.unwrap().success());
            let output = child.wait_with_output().unwrap();
            drop(stdin);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.starts_with("baton: interrupted; 300 lines are stored, the last is line"), "{said}");
            assert!(said.contains("of standard input") && said.ends_with(&format!("{next}\n")), "{said}");
        }
    }
    let rest: String = (0..700).map(|n| format!("{n}\n")).collect();
    let resumed = sandbox.run_with(&["push", "keyed", "-", "--resume", "k", "--json"], rest.as_bytes());
    let resumed = resumed.expect(0).json();
    assert_eq!((&resumed["pushed"], &resumed["duplicates"]), (&100.into(), &600.into()));
}

#[test]
fn a_push_killed_midway_is_completed_by_a_rerun() {
    let sandbox = Sandbox::new();
    let count = 300_000;
    std::fs::write(sandbox.dir.path().join("in"), lines(count)).unwrap();
    let arguments = ["push", "messages", "--file", "in", "--resume", "k"];
    let mut killed = 0;
    for _ in 0..3 {
        let before = if sandbox.path().exists() { stored(&sandbox) } else { 0 };
        let mut child = sandbox.command(&arguments).spawn().unwrap();
        until("some lines are stored, or all", || {
            child.try_wait().unwrap().is_some() || (sandbox.path().exists() && stored(&sandbox) > before)
        });
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
    }
    println!("killed {killed} of 3 before the end");
    sandbox.run(&arguments).expect(0);
    assert_eq!(sandbox.pushed(), count);
}

fn stored(sandbox: &Sandbox) -> u64 {
    let ran = sandbox.run(&["audit", "--json"]);
    if ran.out.is_empty() { 0 } else { ran.json()["pushed"].as_u64().unwrap_or(0) }
}

#[test]
fn a_full_queue_is_waited_for_and_then_reported() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.dir.path().join("in"), lines(20_000)).unwrap();
    for extra in [&[][..], &["--resume", "k"][..]] {
        let arguments = [&["push", "q", "--file", "in", "--max-queue-bytes", "200KiB", "--wait", "1"], extra].concat();
        let before = if sandbox.path().exists() { sandbox.pushed() } else { 0 };
        let ran = sandbox.run(&arguments).expect(1);
        let stored = sandbox.pushed() - before;
        let told = if stored == 0 { "nothing was stored".to_owned() } else { format!("{stored} lines are stored") };
        let last = ran.err.lines().last().unwrap();
        assert!(last.contains("queue q is full") && last.contains(&told), "{}", ran.err);
    }
}

#[test]
fn lines_of_a_slow_producer_are_not_kept_back() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(&["push", "messages", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"1\n").unwrap();
    until("the first line is stored", || sandbox.path().exists() && stored(&sandbox) == 1);
    stdin.write_all(b"2\n").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.pushed(), 2);
}

/// The flag raises the limit of a body, up to its own.
#[test]
fn a_larger_body_is_taken_if_it_is_allowed() {
    let sandbox = Sandbox::new();
    let body = format!("\"{}\"\n", "x".repeat(2_000_000));
    std::fs::write(sandbox.dir.path().join("two.nd"), &body).unwrap();
    for key in [&[][..], &["--resume", "k"]] {
        let push = [&["push", "messages", "--file", "two.nd"], key].concat();
        let refused = sandbox.run(&push).expect(1).err;
        assert!(refused.contains("1048576"), "{refused}");
        sandbox.run(&[&push[..], &["--max-body", "4MiB"]].concat()).expect(0);
    }
    assert_eq!(sandbox.run(&["audit", "--deep", "--json"]).expect(0).json()["ready"], 2);
}

#[test]
fn what_a_store_that_stands_still_has_not_answered_is_not_said_to_be_missing() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    let mut child = sandbox.command(&["push", "q", "-", "--wait", "1"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(300).as_bytes()).unwrap();
    until("the first lines are stored", || sandbox.count("q", "ready") == 300);
    let signal =
        |name: &str| std::process::Command::new("kill").arg(name).arg(server.pid().to_string()).status().unwrap();
    assert!(signal("-STOP").success());
    let stopped = Instant::now();
    stdin.write_all(lines(300).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let took = stopped.elapsed();
    assert!(signal("-CONT").success());
    assert!(took < Duration::from_millis(2_500), "it waited {took:?}, not 1 s");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("300 lines are stored, the last is line 300 of standard input, line"), "{said}");
    assert!(said.contains("600 of standard input may or may not be stored"), "{said}");
}

#[test]
fn a_push_to_a_store_that_stands_still_ends_in_its_time() {
    let server = RedisServer::start(Persistence::None);
    let sandbox = Sandbox::on(&server);
    sandbox.run(&["push", "q", "1"]).expect(0);
    let signal =
        |name: &str| std::process::Command::new("kill").arg(name).arg(server.pid().to_string()).status().unwrap();
    assert!(signal("-STOP").success());
    for key in [&[][..], &["--resume", "k"]] {
        let began = Instant::now();
        let ran = sandbox.run(&[&["push", "q", "1", "--wait", "1"], key].concat()).expect(5);
        let took = began.elapsed();
        assert!(took < Duration::from_millis(2_500), "it waited {took:?}, not 1 s: {}", ran.err);
    }
    assert!(signal("-CONT").success());
}

#[test]
fn a_push_that_is_kept_waiting_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("in", lines(20_000));
    let push = ["push", "q", "--file", "in", "--max-queue-bytes", "200KiB", "--wait", "3"];
    let full = "queue q is full: it holds its bound of 200 KiB";
    let ran = sandbox.run(&push).expect(1);
    assert!(ran.err.contains(full) && ran.err.contains("baton: no node works for queue q; it waits\n"), "{}", ran.err);
    sandbox.run(&["pause", "q"]).expect(0);
    let ran = sandbox.run(&push).expect(1);
    assert!(ran.err.contains("baton: queue q is paused; `baton resume q` lets it go on\n"), "{}", ran.err);
    let json = sandbox.run(&[&push[..], &["--json"]].concat()).expect(1);
    assert!(!json.err.contains("paused"), "{}", json.err);
}

/// A destruction while a push is under way: what was stored before it is gone, so the push must not count it.
fn a_destruction_ends_a_push(sandbox: &Sandbox, flags: &[&str]) {
    let mut push = sandbox.command(&[&["push", "q", "-"], flags].concat());
    let mut push = push.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = push.stdin.take().unwrap();
    input.write_all(lines(5_000).as_bytes()).unwrap();
    until("some are stored", || sandbox.count("q", "ready") >= 4_000);
    sandbox.run(&["destroy", "--yes"]).expect(0);
    // Nobody reads on after the push has seen it.
    input.write_all(lines(7_000).as_bytes()).ok();
    drop(input);
    let ran = sandbox::Ran::of(push.wait_with_output().unwrap()).expect(1);
    let line = ran.err.lines().last().unwrap_or_default();
    assert!(
        line.contains("the store has lost the data of this fleet while this push was under way "),
        "{flags:?}: {}",
        ran.err
    );
    assert!(line.ends_with("are gone; push the whole input again"), "{flags:?}: {}", ran.err);
    sandbox.run_with(&[&["push", "q", "-"], flags].concat(), lines(12_000).as_bytes()).expect(0);
    assert_eq!(sandbox.count("q", "ready"), 12_000, "{flags:?}");
}

#[test]
fn a_destruction_during_a_push_is_told() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        for flags in [&[][..], &["--resume", "k"]] {
            a_destruction_ends_a_push(&sandbox, flags);
            sandbox.run(&["destroy", "--yes"]).expect(0);
        }
    }
}

#[test]
fn a_message_under_an_idempotency_key_exists_once() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        let push =
            |body: &str, more: &[&str]| sandbox.run(&[&["push", "mail", body, "--once", "order-7"], more].concat());
        assert_eq!(push("{\"n\":1}", &[]).expect(0).out, "pushed 1 message to mail (id 1)\n");
        let again = push("{\"n\":1}", &["--json"]).expect(0).json();
        assert_eq!((&again["pushed"], &again["duplicates"], &again["first_id"]), (&json!(0), &json!(1), &json!(1)));
        assert_eq!(push("{\"n\":1}", &[]).expect(0).out, "it was pushed before to mail (id 1)\n");
        let other = push("{\"n\":2}", &[]).expect(1);
        assert!(other.one_line().contains("order-7"), "{}", other.err);
        for bodies in [&["1", "2"][..], &["-"], &[]] {
            let many = sandbox.run(&[&["push", "mail", "--once", "k"], bodies].concat()).expect(2);
            assert!(many.one_line().contains("--once KEY stands for one message"), "{}", many.err);
        }
        assert_eq!(sandbox.count("mail", "ready"), 1);
    }
}
