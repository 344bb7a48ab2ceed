//! Bodies and errors that mean harm: none becomes an option or code of a program, fills a log, or steers a terminal.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::process::Command;

use sandbox::{Ran, Sandbox};

/// Programs are found where the tests find them.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command: Command = sandbox.command(arguments);
    Ran::of(command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap())
}

fn node(sandbox: &Sandbox, command: &str, more: &[&str]) -> Ran {
    run(sandbox, &[&["node", "--queue", "q", "--exec-once", command, "--until-done"], more].concat())
}

fn push(sandbox: &Sandbox, bodies: &[&str]) {
    let lines = bodies.iter().map(|body| format!("{body}\n")).collect::<String>();
    sandbox.run_with(&["push", "q", "-"], lines.as_bytes()).expect(0);
}

/// The error, which is removed. Not all bodies beside it are texts.
fn error(sandbox: &Sandbox) -> String {
    #[derive(serde::Deserialize)]
    struct Drained {
        error: String,
    }
    let removed = sandbox.run(&["errors", "--remove", "--json"]).expect(0).out;
    serde_json::from_str::<Drained>(&removed).unwrap().error
}

#[test]
fn a_body_is_no_option_of_the_command() {
    let sandbox = Sandbox::new();
    for command in ["echo {}", "echo {}.png", "sh -c 'echo \"$1\"' sh {}"] {
        push(&sandbox, &["\"-n\""]);
        assert_eq!(node(&sandbox, command, &[]).expect(3).out, "", "{command}");
        let told = error(&sandbox);
        assert!(told.contains("begins with `-`") && told.contains("--allow-dash"), "{told}");
    }
    push(&sandbox, &["\"-n\"", "-5"]);
    assert_eq!(node(&sandbox, "printf -- %s {}", &["--concurrency", "1"]).expect(0).out, "-n\n-5\n");
    push(&sandbox, &["\"-n\""]);
    assert_eq!(node(&sandbox, "printf %s {}", &["--allow-dash"]).expect(0).out, "-n\n");
    push(&sandbox, &["\"-n\""]);
    sandbox.write("baton.toml", "[queues.q]\nexec_once = \"printf %s {}\"\nallow_dash = true\n");
    assert_eq!(run(&sandbox, &["node", "--until-done"]).expect(0).out, "-n\n");
    sandbox.write("baton.toml", "[queues.q]\nexec = \"cat\"\nallow_dash = true\n");
    let told = sandbox.run(&["config", "--check"]).expect(2);
    assert!(told.one_line().contains("allow_dash of queue q is for exec_once"), "{}", told.err);
}

#[test]
fn a_body_never_becomes_code_of_an_interpreter() {
    let sandbox = Sandbox::new();
    for command in
        ["python3 -c 'print(\"{}\")'", "perl -ne 'print \"{}\"'", "awk '/{}/'", "env -S 'echo {}'", "ssh host gzip {}"]
    {
        let refused = run(&sandbox, &["node", "--exec-once", command]).expect(2);
        assert!(refused.one_line().contains("would be run as code; "), "{command}: {}", refused.err);
    }
}

#[test]
fn a_word_that_looks_like_code_is_doubted_once() {
    let sandbox = Sandbox::new();
    push(&sandbox, &["1", "2"]);
    sandbox.write("tool", "#!/bin/sh\n");
    let tool = format!("sh {} -c 'f {}'", sandbox.dir.path().join("tool").display(), "{}");
    let told = node(&sandbox, &tool, &[]).expect(0).err;
    assert_eq!(told.matches("if the word behind -c is code").count(), 1, "{told}");
}

#[test]
fn a_body_that_no_argument_can_be_is_told_in_short() {
    let sandbox = Sandbox::new();
    let long = format!("\"{}\"", "x".repeat(200_000));
    for (body, cause) in [
        (&*long, "read a long body from standard input"),
        ("\"a\\u0000b\"", "has a NUL in it"),
        ("\"\\ud800\"", "this string has half of a surrogate pair"),
    ] {
        push(&sandbox, &[body]);
        let ran = node(&sandbox, "echo -- {}", &[]).expect(3);
        assert!(ran.err.lines().all(|line| line.len() < 1_000), "{} bytes", ran.err.len());
        assert!(ran.err.contains(cause), "{}", ran.err);
        let told = error(&sandbox);
        assert!(told.contains(cause) && told.len() < 500, "{told}");
    }
}

#[test]
fn a_line_of_the_log_is_bounded_whatever_an_error_says() {
    let sandbox = Sandbox::new();
    push(&sandbox, &["1"]);
    sandbox.write("fail", "read -r line; printf '{\"event\":\"error\",\"message\":\"%0100000d\"}\\n' 1; read -r line");
    let exec = format!("sh {}", sandbox.dir.path().join("fail").display());
    let ran = run(&sandbox, &["node", "--queue", "q", "--exec", &exec, "--until-done"]).expect(3);
    assert!(ran.err.lines().all(|line| line.len() < 5_000), "{} bytes", ran.err.len());
    assert!(ran.err.contains(" bytes more)"), "{}", ran.err);
}

#[test]
fn errors_steer_no_terminal() {
    let sandbox = Sandbox::new();
    let odd = "\u{202e}a\u{2028}b\u{9b}31m\u{2066}";
    sandbox.failed("q", &[(&format!("\"{odd}\""), odd)]);
    for arguments in [&["errors"][..], &["errors", "--json"], &["errors", "--group"]] {
        let printed = sandbox.run(arguments).expect(0).out;
        assert!(!printed.contains(|c: char| odd.contains(c) && !c.is_ascii()), "{arguments:?}: {printed:?}");
        assert!(printed.contains("202e"), "{arguments:?}: {printed:?}");
    }
    let listed = sandbox.run(&["errors", "--json"]).expect(0).json();
    assert_eq!((listed["error"].as_str(), listed["body"].as_str()), (Some(odd), Some(odd)));
}
