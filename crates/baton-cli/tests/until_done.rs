//! Fleets that end when their work does: exit codes, books, and sources that stay ended.

mod sandbox;

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};

const TICKS: [&str; 7] = ["--count", "200", "--interval", "0", "--until-done", "--queue", "ticking"];
const DEMO: [&str; 6] = ["--handler", "demo", "--demo-delay", "0", "--demo-fail", "0.1"];

/// The scenario on both real stores.
fn on_both(scenario: fn(&Sandbox)) {
    scenario(&Sandbox::new());
    let server = RedisServer::start(Persistence::None);
    scenario(&Sandbox::on(&server));
}

#[test]
fn up_ends_with_3_after_errors_and_its_source_stays_ended() {
    let sandbox = Sandbox::new();
    let up = [&["up", "--workers", "2"][..], &DEMO, &TICKS].concat();
    let ran = sandbox.run(&up).expect(3);
    assert!(ran.err.contains("source ticks has ended fleet=baton session="), "{}", ran.err);
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    let count = |state: &str| books[state].as_u64().unwrap_or_default();
    assert_eq!((count("pushed"), count("done") + count("failed")), (200, 200), "{books}");
    assert!(count("failed") > 0, "{books}");

    let told = format!(" done, but {} messages failed; see `baton errors ticking` ", count("failed"));
    assert!(ran.err.contains(&told), "{}", ran.err);

    // Those are not of the next run.
    let again = sandbox.run(&[&up[..], &["-q"]].concat()).expect(0);
    let (ended, failed) = again.err.split_once('\n').unwrap_or_default();
    assert_eq!(ended, "baton: source ticks has ended; --rewind starts it again");
    let told = format!(
        "baton: done: nothing is left; {} messages failed before this run; see `baton errors ticking`\n",
        count("failed")
    );
    assert_eq!(failed, told);
    assert_eq!(sandbox.pushed(), 200);

    sandbox.run(&["errors", "--remove", "--json"]).expect(0);
    let rewound = [&["node", "-q", "--rewind", "--handler", "noop"][..], &TICKS].concat();
    sandbox.run(&rewound).expect(0);
    assert_eq!(sandbox.pushed(), 400);
}

#[test]
fn every_line_of_a_file_is_a_message() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "{\"n\":1}\nnot JSON\nno line end");
    let lines = ["node", "--lines", "lines", "--handler", "noop", "--until-done"];
    let ran = sandbox.run(&lines).expect(0);
    assert!(ran.err.contains("done: nothing is left"), "{}", ran.err);
    assert_eq!(sandbox.count("messages", "done"), 3);
    let again = sandbox.run(&lines).expect(0).err;
    let place = |line: &str| again.find(line).unwrap_or_else(|| panic!("no {line:?}: {again}"));
    let (joined, ended, done) = (
        place(" joined "),
        place("all 3 lines of lines were read before; --rewind "),
        place(" done: nothing is left "),
    );
    assert!(joined < ended && ended < done, "{again}");
    // The same lines as JSON values are another source, of whose end there is nothing to tell.
    let clash = sandbox.run(&[&lines[..], &["-q", "--json-lines"]].concat()).expect(1);
    assert!(
        clash.one_line().contains("is known with another definition: other lines, or the same in"),
        "{}",
        clash.err
    );
    let named = [&lines[..], &["--source", "named", "--queue"]].concat();
    sandbox.run(&[&named[..], &["messages"]].concat()).expect(0);
    let elsewhere = sandbox.run(&[&named[..], &["other", "-q"]].concat()).expect(1);
    let told = "is known with another definition: it feeds queue messages, not other; give this one another name \
                (--source), or start it over with --rewind";
    assert!(elsewhere.one_line().ends_with(told), "{}", elsewhere.err);
}

#[test]
fn messages_pushed_by_hand_need_no_source() {
    on_both(|sandbox| {
        sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
        let node = ["node", "--handler", "noop", "--until-done"];
        sandbox.run(&node).expect(0);
        assert_eq!(sandbox.count("messages", "done"), 3);
        // Nothing to do is done; a name of which nothing is there is a slip.
        sandbox.run(&node).expect(0);
        for command in ["node", "up"] {
            let flags = ["--handler", "noop", "--until-done", "-q"];
            let typo = sandbox.run(&[&[command, "--queue", "mesages"], &flags[..]].concat()).expect(1);
            assert_eq!(
                typo.one_line(),
                "baton: there is no queue mesages in this fleet (there are: messages); did you mean messages?"
            );
            let fleet = sandbox.run(&[&["--fleet", "batn", command], &flags[..]].concat()).expect(1);
            assert!(fleet.one_line().contains("there is no fleet batn in "), "{}", fleet.err);
        }
        sandbox.run(&["audit", "mesages"]).expect(1);
        sandbox.run(&["--fleet", "batn", "status"]).expect(1);
    });
}

#[test]
fn sources_that_others_named_are_not_waited_for() {
    on_both(|sandbox| {
        // An endless source fed the queue before.
        let mut endless = sandbox.start(&["node", "--handler", "noop", "--interval", "5ms", "--queue", "fetch"]);
        until("it feeds", || sandbox.count("fetch", "done") > 3);
        endless.signal("-TERM");
        assert_eq!(endless.wait(), Some(0), "{}", sandbox.log());
        let before = sandbox.pushed();
        sandbox.write("urls.txt", "a\nb\nc\n");
        let up =
            ["up", "--workers", "1", "--handler", "noop", "--lines", "urls.txt", "--queue", "fetch", "--share-queue"];
        sandbox.run(&[&up[..], &["--until-done"]].concat()).expect(0);
        assert_eq!(sandbox.pushed(), before + 3);
        sandbox.run(&["node", "--handler", "noop", "--queue", "fetch", "--until-done"]).expect(0);
    });
}

#[test]
fn a_source_that_fails_for_good_ends_with_1() {
    on_both(|sandbox| {
        sandbox.write("bad", b"good\n\xff\n");
        for (flags, cause) in [
            (["--lines-from", "echo one; echo oh no >&2; exit 3"], "failed with exit code 3: oh no"),
            (["--lines", "bad"], "line 2 is not UTF-8 text (byte 1)"),
        ] {
            for command in [&["node"][..], &["up", "--workers", "1"]] {
                let rest = ["-q", "--handler", "noop", "--until-done", "--queue", "q"];
                let ran = sandbox.run(&[command, &rest, &flags].concat()).expect(1);
                // Before it, what is left may be said.
                let line = ran.err.lines().last().unwrap_or_default();
                assert!(line.contains("has failed for good") && line.contains(cause), "{line}");
                assert!(
                    line.ends_with("correct that and run this again, or start the source over with --rewind"),
                    "{line}"
                );
            }
        }
        // What came before the fault was pushed once.
        assert_eq!(sandbox.pushed(), 2);
    });
}

#[test]
fn what_is_left_is_said_after_a_source_that_failed_too() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "q", "1", "2"]).expect(0);
    sandbox.run(&["pause", "q"]).expect(0);
    sandbox.write("bad", b"good\n\xff\n");
    let node = ["node", "-q", "--handler", "noop", "--until-done", "--queue", "q", "--lines", "bad", "--share-queue"];
    let told = sandbox.run(&node).expect(1).err;
    assert!(told.contains("stopped before all was done: 3 messages left, and its source has not ended\n"), "{told}");
    assert!(told.contains("has failed for good"), "{told}");
}

#[test]
fn failures_of_earlier_runs_are_told_apart_from_those_of_this_one() {
    on_both(|sandbox| {
        sandbox.failed("q", &[("1", "x"), ("2", "x")]);
        let node = ["node", "-q", "--queue", "q", "--until-done", "--exec-once"];
        let told = |program: &str, code| sandbox.run(&[&node[..], &[program]].concat()).expect(code).err;
        let older = "baton: done: nothing is left; 2 messages failed before this run; see `baton errors q`\n";
        assert_eq!(told("/bin/true", 0), older);
        sandbox.run(&["push", "q", "3"]).expect(0);
        let both = "baton: done, but 1 message failed, and 2 before this run; see `baton errors q`\n";
        assert_eq!(told("/bin/false", 3), both);
        // One that failed before and fails again is of this run.
        sandbox.run(&["errors", "q", "--id", "1", "--requeue"]).expect(0);
        assert_eq!(told("/bin/false", 3), both);
        sandbox.run(&["errors", "--remove"]).expect(0);
        assert_eq!(told("/bin/true", 0), "");
    });
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    for (code, flags) in [
        (2, &["--lines", "x", "--interval", "1s"][..]),
        (2, &["--lines", "x", "--cron", "* * * * *"]),
        (2, &["--json-lines"]),
        (2, &["--cron", "now and then"]),
        (2, &["--cron", "* * * * *", "--until-done"]),
        (2, &["--catch-up", "all"]),
        (2, &["--heartbeat", "500ms"]),
        (2, &["--demo-delay", "2s..1s"]),
        (2, &["--demo-fail", "2"]),
        (2, &["--role", "boss"]),
        (2, &["--count", "5"]),
        (2, &["--rewind"]),
        (2, &["--follow"]),
        (2, &["--lines", "x", "--follow", "--until-done"]),
        (2, &["--interval", "1s", "--until-done"]),
        (1, &["--lines", "missing"]),
        (1, &["--lines", "."]),
        (5, &["--wait", "0", "--rport", "1"]),
    ] {
        for command in ["node", "up"] {
            if command == "up" && flags.contains(&"--role") {
                continue;
            }
            // Some of it is found out once the first lines were said.
            let ran = sandbox.run(&[&[command, "-q", "--handler", "noop"][..], flags].concat());
            ran.expect(code).one_line();
        }
    }
    sandbox.run(&["up", "--demo", "--store", "memory:", "--workers", "1"]).expect(2).one_line();
}

#[test]
fn who_waits_for_a_retry_that_is_far_away_is_told_of_it_once() {
    on_both(|sandbox| {
        sandbox.run(&["push", "q", "1"]).expect(0);
        let node = ["node", "-q", "--queue", "q", "--exec-once", "/bin/false", "--retries", "2", "--backoff", "2h"];
        let mut node = sandbox.start(&[&node[..], &["--until-done"]].concat());
        let line = "baton: queue q waits: its next retry is due in ";
        until("it is told", || sandbox.log().contains(line));
        node.signal("-TERM");
        node.wait();
        assert_eq!(sandbox.log().matches(line).count(), 1, "{}", sandbox.log());
    });
}
