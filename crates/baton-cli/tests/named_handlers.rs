//! No real work is done by accident: a handler is named, and the demonstration has a queue of its own.

mod sandbox;

use sandbox::{Sandbox, until};

#[test]
fn a_node_without_a_handler_is_refused_and_touches_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "charge", "{\"order\":1}"]).expect(0);
    for flags in [
        &["node", "--queue", "charge"][..],
        &["node", "--role", "worker", "--queue", "charge"],
        &["node", "--interval", "5ms"],
        &["up", "--queue", "charge"],
        &["up", "--lines-from", "seq 3"],
        &["up", "--cron", "* * * * *"],
    ] {
        let ran = sandbox.run(flags).expect(2);
        let line = ran.one_line();
        assert!(line.contains("no handler is named") && line.contains("or --handler"), "{flags:?}: {line}");
    }
    let refused = sandbox.run(&["node", "--role", "generator", "--queue", "charge"]).expect(2);
    assert!(refused.one_line().contains("no source is named"), "{}", refused.err);
    assert_eq!((sandbox.pushed(), sandbox.count("charge", "ready")), (1, 1));
}

#[test]
fn a_generator_needs_no_handler_and_a_worker_no_source() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n2\n");
    let feed = ["node", "--role", "generator", "--lines", "lines", "--queue", "q"];
    let mut generator = sandbox.start(&feed);
    until("the lines are pushed", || sandbox.count("q", "ready") == 2);
    let worker = ["node", "--handler", "noop", "--queue", "q", "--until-done"];
    sandbox.run(&worker).expect(0);
    generator.signal("-TERM");
    assert_eq!(generator.wait(), Some(0), "{}", sandbox.log());
    // It offered no source, so there is still just the one.
    let sources = sandbox.status()["sources"].as_array().map(Vec::len);
    assert_eq!((sources, sandbox.count("q", "done")), (Some(1), 2));
}

#[test]
fn a_worker_ignores_what_is_said_of_a_source_but_may_wait_for_its_end() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "q", "1", "2"]).expect(0);
    let worker = ["node", "--role", "worker", "--handler", "noop", "--queue", "q", "--until-done"];
    sandbox.run(&[&worker[..], &["--lines", "nosuch.txt", "--rewind", "--follow"]].concat()).expect(0);
    sandbox.run(&[&worker[..], &["--count", "3"]].concat()).expect(0);
    assert_eq!((sandbox.count("q", "done"), sandbox.status()["sources"].as_array().map(Vec::len)), (2, Some(0)));
    let mut waits = sandbox.start(&[&worker[..], &["--source", "ticks"]].concat());
    let ticks = ["node", "--role", "generator", "--interval", "0", "--count", "5", "--queue", "q", "--until-done"];
    sandbox.run(&ticks).expect(0);
    assert_eq!(waits.wait(), Some(0), "{}", sandbox.log());
    assert_eq!(sandbox.count("q", "done"), 7);
}

#[test]
fn the_demonstration_leaves_an_older_store_of_ticks_alone() {
    let sandbox = Sandbox::new();
    // Ticks that feed `messages`, and orders waiting there.
    let older = ["node", "--handler", "noop", "--source", "ticks", "--queue", "messages", "--count", "3"];
    sandbox.run(&[&older[..], &["--interval", "0", "--until-done"]].concat()).expect(0);
    sandbox.run(&["push", "messages", "{\"order\":1}"]).expect(0);
    let up = ["up", "--demo", "--workers", "1", "--interval", "1ms", "--demo-delay", "0", "--demo-fail", "0"];
    sandbox.run(&[&up[..], &["--count", "20", "--until-done"]].concat()).expect(0);
    assert_eq!((sandbox.count("demo", "done"), sandbox.count("demo", "ready")), (20, 0));
    assert_eq!((sandbox.count("messages", "done"), sandbox.count("messages", "ready")), (3, 1));
    let status = sandbox.status();
    let sources = status["sources"].as_array().into_iter().flatten();
    let fed: Vec<_> = sources.map(|it| (it["name"].as_str(), it["queue"].as_str())).collect();
    assert_eq!(fed, [(Some("demo"), Some("demo")), (Some("ticks"), Some("messages"))]);
}

#[test]
fn a_command_that_names_no_work_is_refused_with_what_there_is_to_do() {
    let sandbox = Sandbox::new();
    let here = std::fs::canonicalize(sandbox.dir.path()).unwrap();
    for (flags, file) in [("", ""), ("--concurrency 4", ""), ("", "fleet = \"shop\"\n")] {
        let why = match file {
            "" => format!("there is no baton.toml in {}", here.display()),
            file => {
                sandbox.write("baton.toml", file);
                "baton.toml describes no queue".to_owned()
            }
        };
        for command in ["up", "node"] {
            let words: Vec<&str> = [command].into_iter().chain(flags.split_whitespace()).collect();
            let refused = sandbox.run(&words).expect(2);
            let line = refused.one_line();
            assert!(
                line.starts_with(&format!("baton: nothing says what to run: no flag names work, and {why}; ")),
                "{line}"
            );
            assert!(
                line.contains("--demo") && line.contains("--exec") && line.contains("baton config --help"),
                "{line}"
            );
        }
    }
    assert!(!sandbox.path().exists(), "nothing was touched");
}

#[test]
fn the_demonstration_is_no_part_of_a_described_fleet_or_of_other_work() {
    let sandbox = Sandbox::new();
    for flags in [&["--queue", "q"][..], &["--handler", "noop"], &["--exec", "cat"], &["--lines-from", "seq 3"]] {
        sandbox.run(&[&["up", "--demo"][..], flags].concat()).expect(2).one_line();
    }
    for flags in [&["--demo-delay", "0"][..], &["--demo-fail", "0"]] {
        let refused = sandbox.run(&[&["node", "--handler", "noop"][..], flags].concat()).expect(2);
        assert!(refused.one_line().contains("; add --demo or --handler demo"), "{}", refused.err);
    }
    sandbox.write("baton.toml", "[queues.mail]\nhandler = \"noop\"\n");
    let refused = sandbox.run(&["up", "--demo"]).expect(2);
    assert!(refused.one_line().contains("baton.toml describes queues"), "{}", refused.err);
    assert!(!sandbox.path().exists(), "nothing was touched");
}

#[test]
fn numbers_of_worker_processes_are_refused_for_commands() {
    let sandbox = Sandbox::new();
    for flag in ["--workers", "--min-workers", "--max-workers"] {
        let refused = sandbox.run(&["up", "--queue", "q", "--exec-once", "/bin/true", flag, "4"]).expect(2);
        let line = refused.one_line();
        assert!(line.starts_with(&format!("baton: {flag} ")) && line.ends_with("by --concurrency"), "{line}");
    }
    assert!(!sandbox.path().exists(), "nothing was touched");
}
