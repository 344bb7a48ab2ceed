//! A fleet that a file describes: run as a whole, in parts, and by flags that go before it.

mod sandbox;

use sandbox::{Sandbox, until};

const FLEET: &str = r#"
[queues.fetch]
handler = "demo"
demo_delay = "0"
demo_fail = 0

[queues.doomed]
handler = "demo"
demo_delay = "0"
demo_fail = 1
retries = 1
backoff = "1ms"

[queues.quiet]
handler = "noop"
concurrency = 2

[sources.lines]
queue = "fetch"
lines = "lines.txt"

[sources.ticks]
queue = "doomed"
interval = "1ms"
count = 7
"#;

fn described() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("baton.toml", FLEET);
    sandbox.write("lines.txt", "one\ntwo\nthree\n");
    sandbox
}

#[test]
fn up_runs_all_of_it_and_waits_for_all_of_it() {
    let sandbox = described();
    sandbox.run(&["push", "quiet", "1", "2"]).expect(0);
    let ran = sandbox.run(&["up", "--workers", "1", "--until-done"]).expect(3);
    assert!(ran.err.contains(" done, but 7 messages failed; see `baton errors doomed`"), "{}", ran.err);
    let count = |queue, state| sandbox.count(queue, state);
    assert_eq!((count("fetch", "done"), count("doomed", "failed"), count("quiet", "done")), (3, 7, 2));
    sandbox.run(&["audit", "--deep"]).expect(0);
    // Both sources stay ended, and it is said of each.
    let again = sandbox.run(&["up", "-q", "--workers", "0", "--until-done"]).expect(0).err;
    for told in [
        "all 3 lines of lines.txt were read before; --rewind reads",
        "source ticks has ended; --rewind starts it again",
    ] {
        assert!(again.contains(&format!("baton: {told}")), "{again}");
    }
    sandbox.failed("quiet", &[("1", "x")]);
    let both = sandbox.run(&["up", "-q", "--workers", "0", "--until-done"]).expect(0).err;
    let older =
        "nothing is left; 8 messages failed in queues doomed (7), quiet (1) before this run; see `baton errors`";
    assert!(both.contains(older), "{both}");
    sandbox.run(&["up", "-q", "--workers", "0", "--until-done", "--rewind"]).expect(3);
    assert_eq!((count("fetch", "done"), count("doomed", "failed")), (6, 14));
}

#[test]
fn a_file_of_lines_that_is_not_here_keeps_nothing_else_from_running() {
    let sandbox = described();
    sandbox.run(&["node", "--queue", "fetch", "--until-done"]).expect(0);
    // What was read to its end is not needed any more.
    std::fs::remove_file(sandbox.path().with_file_name("lines.txt")).unwrap();
    sandbox.run(&["up", "-q", "--workers", "0", "--until-done"]).expect(3);
    assert_eq!((sandbox.count("fetch", "done"), sandbox.count("doomed", "failed")), (3, 7));
    // What was not is left to others, unless it is waited for.
    sandbox.run(&["source", "remove", "lines"]).expect(0);
    let ran = sandbox.run(&["up", "-q", "--workers", "0", "--until-done"]).expect(1);
    assert!(ran.one_line().contains("source lines: cannot read lines.txt"), "{}", ran.err);
    let mut node = sandbox.start(&["node", "--queue", "fetch"]);
    sandbox.run(&["push", "fetch", "1"]).expect(0);
    until("the message is done", || sandbox.count("fetch", "done") == 4);
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
}

#[test]
fn a_node_takes_the_part_that_is_chosen() {
    let sandbox = described();
    sandbox.run(&["push", "quiet", "1"]).expect(0);
    sandbox.run(&["node", "--queue", "fetch", "--until-done"]).expect(0);
    assert_eq!((sandbox.count("fetch", "done"), sandbox.count("quiet", "ready")), (3, 1));
    assert_eq!(sandbox.pushed(), 4, "the source of the other queue did not run");
    sandbox.run(&["node", "--queue", "fetch", "--queue", "quiet", "--until-done"]).expect(0);
    assert_eq!((sandbox.count("quiet", "done"), sandbox.pushed()), (1, 4));
    // A generator has the sources alone, a worker leaves them to others and waits for them.
    let mut worker = sandbox.start(&["node", "--role", "worker", "--queue", "doomed", "--until-done"]);
    let mut generator = sandbox.start(&["node", "--role", "generator", "--source", "ticks"]);
    assert_eq!(worker.wait(), Some(3));
    assert_eq!(sandbox.count("doomed", "failed"), 7);
    generator.signal("-TERM");
    assert_eq!(generator.wait(), Some(0));
    let ran = sandbox.run(&["node", "--queue", "fecth"]).expect(2);
    assert_eq!(ran.one_line(), "baton: baton.toml describes no queue fecth; did you mean fetch?");
    let ran = sandbox.run(&["node", "--source", "other"]).expect(2);
    assert_eq!(ran.one_line(), "baton: baton.toml describes no source other; there are lines, ticks");
    let ran = sandbox.run(&["node", "--role", "generator", "--queue", "quiet"]).expect(2);
    assert!(ran.one_line().contains("no source is chosen, so there is nothing to do"), "{}", ran.err);
}

#[test]
fn flags_about_one_queue_or_source_go_before_the_file_and_are_refused_for_several() {
    let sandbox = described();
    for (flags, cause) in [
        (["--retries", "3"], "--retries is about one queue, and baton.toml describes 3; choose one with --queue"),
        (["--handler", "noop"], "--handler is about one queue"),
        (["--concurrency", "3"], "--concurrency is about one queue"),
        (["--count", "3"], "--count is about one source, and baton.toml describes 2; choose one with --source"),
        (["--lines", "lines.txt"], "--lines is about one source"),
    ] {
        for command in ["node", "up"] {
            let ran = sandbox.run(&[&[command][..], &flags].concat()).expect(2);
            assert!(ran.one_line().contains(cause), "{}", ran.err);
        }
    }
    assert!(!sandbox.path().exists(), "nothing was touched");
    // With one of each left, both are overridden; in worker processes as well.
    let chosen = ["--queue", "doomed", "--handler", "noop", "--count", "5", "--until-done"];
    sandbox.run(&[&["up", "--workers", "1"][..], &chosen].concat()).expect(0);
    assert_eq!(sandbox.count("doomed", "done"), 5);
    // A queue without a source may be given one.
    sandbox.run(&["node", "--queue", "quiet", "--lines", "lines.txt", "--until-done"]).expect(0);
    assert_eq!(sandbox.count("quiet", "done"), 3);
}

#[test]
fn queues_that_others_work_for_are_fed_and_not_worked() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "baton.toml",
        "[queues.theirs]\nhandler = \"none\"\n[sources.s]\nqueue = \"theirs\"\ninterval = \"1ms\"\ncount = 3\n",
    );
    let ran = sandbox.run(&["node", "--role", "worker"]).expect(2);
    assert!(ran.one_line().contains("no queue with a handler is chosen"), "{}", ran.err);
    let mut feeds = sandbox.start(&["node"]);
    until("it is fed", || sandbox.count("theirs", "ready") == 3);
    feeds.signal("-TERM");
    assert_eq!(feeds.wait(), Some(0));
    // There is nothing for workers to do, so there are none.
    let mut feeds = sandbox.start(&["up", "--no-gateway"]);
    until("it runs", || sandbox.nodes(None).len() == 1);
    feeds.signal("-TERM");
    assert_eq!(feeds.wait(), Some(0));
    assert!(!sandbox.log().contains("worker"), "{}", sandbox.log());
}

#[test]
fn queues_that_others_work_for_are_not_waited_for_by_who_works() {
    let sandbox = Sandbox::new();
    let fleet = "[queues.theirs]\nhandler = \"none\"\n[queues.ours]\nhandler = \"noop\"\n\
                 [sources.urls]\nqueue = \"ours\"\nlines = \"urls\"\n\
                 [sources.nightly]\nqueue = \"theirs\"\ncron = \"0 3 * * *\"\n";
    sandbox.write("baton.toml", fleet);
    sandbox.write("urls", "a\nb\n");
    sandbox.run(&["push", "theirs", "1"]).expect(0);
    sandbox.run(&["up", "--source", "urls", "--workers", "0", "--until-done"]).expect(0);
    assert_eq!((sandbox.count("ours", "done"), sandbox.count("theirs", "ready")), (2, 1));
}

#[test]
fn programs_run_the_messages_of_queues() {
    let sandbox = Sandbox::new();
    let programs = r#"
[queues.upper]
exec_once = "tr a-z A-Z"
[queues.picky]
exec_once = "sh -c 'exit $1' sh {}"
concurrency = 1
[queues.missing]
exec = "no-such-program --at-all"
[sources.words]
queue = "upper"
lines = "words"
"#;
    sandbox.write("baton.toml", programs);
    sandbox.write("words", "one\ntwo\n");
    sandbox.run(&["config", "--check"]).expect(0);
    let run = |flags: &[&str]| {
        let mut up = sandbox.command(&[&["up"][..], flags].concat());
        up.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let ran = run(&[]);
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(told.starts_with("baton: queue missing: there is no program \"no-such-program\""), "{told}");
    assert_eq!(ran.status.code(), Some(1));
    assert!(!sandbox.path().exists(), "nothing was touched");
    sandbox.run(&["push", "picky", "0", "1"]).expect(0);
    // One that is not chosen need not be there.
    let ran = run(&["--queue", "upper", "--queue", "picky", "--until-done"]);
    let (printed, told) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    assert_eq!(ran.status.code(), Some(3), "{told}");
    assert!(["ONE\nTWO\n", "TWO\nONE\n"].contains(&printed.as_str()), "{printed} {told}");
    assert_eq!((sandbox.count("picky", "done"), sandbox.count("picky", "failed")), (1, 1));
}

#[test]
fn workers_go_by_the_text_that_up_has_read() {
    let sandbox = described();
    let mut up = sandbox.start(&["up", "--no-gateway", "--workers", "1"]);
    until("the worker is there", || sandbox.nodes(None).len() == 2);
    let first: Vec<u32> = sandbox.nodes(None).into_iter().filter(|pid| *pid != up.pid()).collect();
    sandbox.write("baton.toml", "[queues.fetch");
    let kill = ["-9".to_owned(), first.first().unwrap().to_string()];
    assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
    let another = |pid: &u32| *pid != up.pid() && !first.contains(pid);
    // What looks here would read the file that is broken now.
    let nodes = || {
        let output = sandbox.command(&["status", "--json", "--config", "/dev/null"]).output().unwrap();
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().filter_map(|node| u32::try_from(node["pid"].as_u64()?).ok()).collect::<Vec<u32>>()
    };
    until("another one is there", || nodes().iter().any(another));
    up.signal("-TERM");
    assert_eq!(up.wait(), Some(0));
}

#[test]
fn the_example_is_right_and_ends() {
    let sandbox = Sandbox::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/baton.toml");
    let checked = sandbox.run(&["config", "--check", "--config", example]).expect(0).out;
    assert!(checked.ends_with("baton.toml: 3 queues, 2 sources\n"), "{checked}");
    sandbox.run(&["up", "--workers", "1", "--until-done", "--config", example]).expect(0);
    let status = sandbox.run(&["status", "--json", "--config", example]).expect(0).json();
    let done: Vec<_> = status["queues"].as_array().unwrap().iter().map(|it| (&it["name"], &it["done"])).collect();
    assert_eq!(
        format!("{done:?}"),
        r#"[(String("beats"), Number(50)), (String("nightly"), Number(0)), (String("pages"), Number(20))]"#
    );
}
