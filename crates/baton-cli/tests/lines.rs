//! Lines of files that grow and of named pipes: what is read, how it ends, and that it always can be ended.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{io::Write as _, process::Command};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};

fn pipe(sandbox: &Sandbox) {
    assert!(Command::new("mkfifo").arg(sandbox.dir.path().join("pipe")).status().unwrap().success());
}

fn append(sandbox: &Sandbox, file: &str, text: &str) {
    let file = std::fs::OpenOptions::new().append(true).open(sandbox.dir.path().join(file));
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_file_that_has_grown_goes_on_with_what_is_new_on_sqlite() {
    a_file_that_has_grown_goes_on_with_what_is_new(&Sandbox::new());
}

#[test]
fn a_file_that_has_grown_goes_on_with_what_is_new_on_redis() {
    let server = RedisServer::start(Persistence::None);
    a_file_that_has_grown_goes_on_with_what_is_new(&Sandbox::on(&server));
}

fn a_file_that_has_grown_goes_on_with_what_is_new(sandbox: &Sandbox) {
    sandbox.write("app.log", "one\n\ntwo");
    let up = ["up", "-q", "--exec-once", "/bin/echo {}", "--lines", "app.log", "--queue", "q", "--until-done"];
    let first = sandbox.run(&up).expect(0);
    assert_eq!((sorted(&first.out), first.err.as_str()), (vec!["one", "two"], ""));
    let nothing_new = "baton: all 3 lines of app.log were read before; --rewind reads it again; another program over the \
                       same lines needs a --queue of its own\n";
    let again = sandbox.run(&up).expect(0);
    assert_eq!((again.out.as_str(), again.err.as_str()), ("", nothing_new));
    // The line end of the last line may come later; then a new line.
    append(sandbox, "app.log", "\n");
    assert_eq!(sandbox.run(&up).expect(0).err, nothing_new);
    // Messages of the queue wait: the advice to read the file again would double them.
    sandbox.run(&["push", "q", "\"more\""]).expect(0);
    let waits = sandbox.run(&up).expect(0);
    assert_eq!(waits.err, "baton: all 3 lines of app.log were read before; 1 message waits and is run now\n");
    append(sandbox, "app.log", "three\nfour");
    let grown = sandbox.run(&up).expect(0);
    assert_eq!(sorted(&grown.out), ["four", "three"]);
    assert_eq!(grown.err, "baton: app.log: 3 lines were read before; goes on at line 4\n");
    assert_eq!(sandbox.count("q", "done"), 5);
    // The last line was a message already.
    append(sandbox, "app.log", "teen\n");
    let continued = sandbox.run(&up).expect(1);
    let why = "line 5 of ";
    assert!(
        continued.err.contains(why) && continued.err.ends_with("or rewind the source (--rewind)\n"),
        "{}",
        continued.err
    );
    // Another file.
    for (text, why) in [("one\n", "has become shorter"), ("uno\ndos\ntres\ncuatro\ncinco\n", "has other lines")] {
        sandbox.write("app.log", text);
        let other = sandbox.run(&up).expect(1);
        assert!(other.out.is_empty() && other.err.contains(why), "{}", other.err);
    }
    let rewound = sandbox.run(&[&up[..], &["--rewind"]].concat()).expect(0);
    assert_eq!(sorted(&rewound.out), ["cinco", "cuatro", "dos", "tres", "uno"]);
    // Other programs over the same list have a place of their own.
    let other = ["up", "-q", "--exec-once", "/bin/echo {}", "--lines", "app.log", "--queue", "other", "--until-done"];
    assert_eq!(sorted(&sandbox.run(&other).expect(0).out).len(), 5);
    assert_eq!(sandbox.run(&["audit", "--deep"]).expect(0).err, "");
}

#[test]
fn a_count_ends_a_file_and_a_larger_one_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("list", "1\n2\n3\n");
    let up = ["up", "-q", "--exec-once", "/bin/echo {}", "--lines", "list", "--until-done", "--count"];
    let run = |count| sandbox.run(&[&up[..], &[count]].concat()).expect(0);
    assert_eq!(sorted(&run("2").out), ["1", "2"]);
    let said = run("2").err;
    assert!(said.starts_with("baton: the first 2 lines of list were read before; --rewind reads it again; "), "{said}");
    assert_eq!(sorted(&run("9").out), ["3"]);
}

#[test]
fn a_command_may_feed_two_queues() {
    let sandbox = Sandbox::new();
    for queue in ["a", "b"] {
        let up = ["up", "-q", "--exec-once", "/bin/echo {}", "--lines-from", "seq 3", "--queue", queue, "--until-done"];
        assert_eq!(sorted(&sandbox.run(&up).expect(0).out), ["1", "2", "3"]);
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn a_followed_file_is_read_on_by_the_next_node(sandbox: &Sandbox) {
    sandbox.write("app.log", "one\ntw");
    let node = ["node", "--handler", "noop", "--lines", "app.log", "--follow"];
    let mut first = sandbox.start(&node);
    until("the finished line is taken", || sandbox.count("messages", "done") == 1);
    append(sandbox, "app.log", "o\nthr");
    until("the second one too", || sandbox.count("messages", "done") == 2);
    first.kill();
    append(sandbox, "app.log", "ee\nfour\n");
    let mut second = sandbox.start(&node);
    until("the successor has the rest", || sandbox.count("messages", "done") == 4);
    // The log is rotated.
    std::fs::rename(sandbox.dir.path().join("app.log"), sandbox.dir.path().join("app.log.1")).unwrap();
    sandbox.write("app.log", "five\n");
    until("the new file is read", || sandbox.count("messages", "done") == 5);
    second.signal("-TERM");
    assert_eq!(second.wait(), Some(0), "{}", sandbox.log());
    assert_eq!(sandbox.pushed(), 5);
}

#[test]
fn a_followed_file_is_read_on_by_the_next_node_on_sqlite() {
    a_followed_file_is_read_on_by_the_next_node(&Sandbox::new());
}

#[test]
fn a_followed_file_is_read_on_by_the_next_node_on_redis() {
    let server = RedisServer::start(Persistence::None);
    a_followed_file_is_read_on_by_the_next_node(&Sandbox::on(&server));
}

#[test]
fn a_pipe_does_not_hold_up_joining_and_ends_with_its_writers() {
    let sandbox = Sandbox::new();
    pipe(&sandbox);
    sandbox.run(&["push", "messages", "0"]).expect(0);
    let node = ["node", "--handler", "noop", "--lines", "pipe", "--share-queue", "--until-done"];
    let mut running = sandbox.start(&node);
    until("it works before anybody writes", || sandbox.count("messages", "done") == 1);
    sandbox.write("pipe", "one\ntwo\nthree");
    assert_eq!(running.wait(), Some(0), "{}", sandbox.log());
    assert_eq!(sandbox.count("messages", "done"), 4);
    let followed = sandbox.run(&[&node[..5], &["--follow"]].concat()).expect(2);
    assert!(followed.one_line().contains("is a pipe"), "{}", followed.err);
}

#[test]
fn a_pipe_is_not_read_on_after_a_failover_but_says_so() {
    a_pipe_is_read_once(&Sandbox::new());
    let server = RedisServer::start(Persistence::None);
    a_pipe_is_read_once(&Sandbox::on(&server));
}

fn a_pipe_is_read_once(sandbox: &Sandbox) {
    pipe(sandbox);
    let node = ["node", "--handler", "noop", "--lines", "pipe"];
    let mut first = sandbox.start(&node);
    let mut writer = std::fs::OpenOptions::new().write(true).open(sandbox.dir.path().join("pipe")).unwrap();
    writer.write_all(b"one\ntwo\n").unwrap();
    until("they are done", || sandbox.count("messages", "done") == 2);
    first.kill();
    drop(writer);
    let refused = sandbox.run(&[&node[..], &["-q", "--until-done"]].concat()).expect(1);
    let line = refused.one_line();
    assert!(line.contains("2 were pushed") && line.contains("; rewind the source"), "{line}");
    assert!(line.ends_with(" (--rewind)"), "{line}");
    let mut rewound = sandbox.start(&[&node[..], &["--rewind", "--until-done"]].concat());
    sandbox.write("pipe", "three\n");
    assert_eq!(rewound.wait(), Some(0), "{}", sandbox.log());
    assert_eq!(sandbox.pushed(), 3);
}

#[test]
fn two_signals_end_a_node_that_waits_for_a_pipe() {
    let sandbox = Sandbox::new();
    pipe(&sandbox);
    for command in [&["node"][..], &["up", "--no-gateway", "--workers", "1"]] {
        let rest = ["--handler", "noop", "--lines", "pipe", "--rewind"];
        let mut running = sandbox.start(&[command, &rest].concat());
        until("it generates", || sandbox.nodes(Some("generator")) == [running.pid()]);
        running.signal("-TERM");
        assert_eq!(running.wait(), Some(0), "{}", sandbox.log());
    }
    // Also one whose handler does not end.
    sandbox.run(&["push", "slow", "1"]).expect(0);
    let slow = ["node", "--handler", "demo", "--demo-delay", "10m", "--queue", "slow", "--lines", "pipe"];
    let mut running = sandbox.start(&[&slow[..], &["--source", "slow", "--share-queue"]].concat());
    until("it runs", || sandbox.count("slow", "in_flight") == 1);
    running.signal("-TERM");
    until("it drains", || sandbox.log().contains("this node finishes what runs"));
    until("it hears the second one as another", || {
        running.signal("-TERM");
        sandbox.log().contains("stopping at once")
    });
    assert!(matches!(running.wait(), Some(0 | 130)), "{}", sandbox.log());
}

#[test]
fn standard_input_has_a_name_of_its_own() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with(&["node", "--handler", "noop", "--lines", "/dev/stdin"], b"1\n").expect(1);
    assert!(ran.one_line().contains("; take --lines - for standard input"), "{}", ran.err);
}

#[test]
fn a_command_that_prints_other_lines_for_a_successor_ends_the_source_and_says_so() {
    let sandbox = Sandbox::new();
    let node = ["node", "--queue", "q", "--handler", "noop", "--lines-from", "cat names; sleep 1000", "--until-done"];
    sandbox.write("names", "a\nb\n");
    let mut first = sandbox.start(&node);
    until("both are done", || sandbox.count("q", "done") == 2);
    first.kill();
    // A folder whose files were processed and removed lists others.
    sandbox.write("names", "c\nd\n");
    let ran = sandbox.run(&node).expect(1);
    let told = "the command printed other lines than before up to line 2; rewind the source to start over (--rewind)";
    assert!(ran.err.contains(told), "{}", ran.err);
    let mut anew = sandbox.start(&[&node[..], &["--rewind"]].concat());
    until("the others are done", || sandbox.count("q", "done") == 4);
    anew.kill();
}
