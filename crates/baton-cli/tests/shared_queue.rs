//! The question to a person at the terminal whether a run may take the messages of others.

mod sandbox;
mod terminal;

use sandbox::{Ran, Sandbox, until};
use terminal::on_a_terminal;

fn answered(typed: &str, command: &[&str]) -> (Sandbox, Ran) {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n2\n");
    sandbox.run(&["push", "q", "7"]).expect(0);
    let own = ["--queue", "q", "--lines", "lines", "--exec-once", "/bin/echo ran-{}", "--until-done"];
    let ran = on_a_terminal(&sandbox.command(&[command, &own].concat()), typed, &[]);
    (sandbox, ran)
}

const QUESTION: &str = "queue q holds 1 message that this run did not push. Run them too? [y/N] ";

#[test]
fn a_person_may_agree_to_run_the_messages_of_others() {
    for command in [&["node"][..], &["up", "--no-gateway"]] {
        let (sandbox, ran) = answered("y\n", command);
        let out = ran.expect(0).out;
        assert!(out.contains(QUESTION) && ["ran-1", "ran-2", "ran-7"].iter().all(|it| out.contains(it)), "{out:?}");
        assert_eq!(sandbox.count("q", "done"), 3);
    }
}

#[test]
fn without_a_yes_nothing_of_others_is_run() {
    // A line end, a word, and Ctrl-C.
    for typed in ["\n", "no\n", "\u{3}"] {
        for command in [&["node"][..], &["up", "--no-gateway"]] {
            let (sandbox, ran) = answered(typed, command);
            let out = ran.expect(1).out;
            let told = if typed == "\u{3}" { "stopped before the question was answered" } else { "add --share-queue" };
            assert!(out.contains(QUESTION) && out.contains(told) && !out.contains("ran-"), "{out:?}");
            assert_eq!((sandbox.count("q", "ready"), sandbox.pushed()), (1, 1));
        }
    }
}

/// The first of two has seen nobody when it began.
#[test]
fn a_program_that_begins_on_the_queue_right_after_is_said_to_the_first() {
    let sandbox = Sandbox::new();
    let log = std::fs::File::create(sandbox.dir.path().join("log")).unwrap();
    let run =
        ["node", "--queue", "q", "--interval", "50ms", "--exec-once", "/bin/echo {}", "--share-queue", "--source"];
    let [mut first, mut second] = ["one", "two"].map(|name| {
        let mut command = sandbox.command(&[&run[..], &[name]].concat());
        command.stderr(log.try_clone().unwrap()).stdout(std::process::Stdio::null());
        let child = command.spawn().unwrap();
        if name == "one" {
            until("it has joined", || sandbox.path().exists() && sandbox.pushed() > 0);
        }
        child
    });
    let written = || std::fs::read_to_string(sandbox.dir.path().join("log")).unwrap();
    until("it is said", || written().contains("another program feeds queue q too: each may run the messages"));
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
