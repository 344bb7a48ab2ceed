//! Fleets that end when their work does: exit codes, books, and sources that stay ended.

mod sandbox;

use sandbox::Sandbox;

const TICKS: [&str; 11] = [
    "--count",
    "200",
    "--interval",
    "0",
    "--demo-delay",
    "0",
    "--demo-fail",
    "0.1",
    "--until-done",
    "--queue",
    "ticking",
];

#[test]
fn up_ends_with_3_after_errors_and_its_source_stays_ended() {
    let sandbox = Sandbox::new();
    let up = [&["up", "--workers", "2"][..], &TICKS].concat();
    let ran = sandbox.run(&up).expect(3);
    assert!(ran.err.contains("source ticks has ended fleet=baton session="), "{}", ran.err);
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    let count = |state: &str| books[state].as_u64().unwrap_or_default();
    assert_eq!((count("pushed"), count("done") + count("dead")), (200, 200), "{books}");
    assert!(count("dead") > 0, "{books}");

    let again = sandbox.run(&[&up[..], &["-q"]].concat()).expect(3);
    assert_eq!(again.one_line(), "baton: source ticks has ended; --rewind starts it again");
    assert_eq!(sandbox.pushed(), 200);

    sandbox.run(&["errors", "--json"]).expect(0);
    let rewound = [&["node", "-q", "--rewind", "--handler", "noop"][..], &TICKS].concat();
    sandbox.run(&rewound).expect(0);
    assert_eq!(sandbox.pushed(), 400);
}

#[test]
fn every_line_of_a_file_is_a_message() {
    let sandbox = Sandbox::new();
    let file = sandbox.dir.path().join("lines");
    assert!(std::fs::write(&file, "{\"n\":1}\nnot JSON\n").is_ok());
    let lines = ["node", "--lines", "lines", "--handler", "noop", "--until-done"];
    let ran = sandbox.run(&lines).expect(0);
    assert!(ran.err.contains("done: nothing is left"), "{}", ran.err);
    assert_eq!(sandbox.count("messages", "done"), 2);
    // The same lines as JSON values are another source; one of them is none.
    let clash = sandbox.run(&[&lines[..], &["--json-lines"]].concat()).expect(1);
    assert!(clash.err.contains("source lines is known with another definition"), "{}", clash.err);
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    for (code, flags) in [
        (2, &["--lines", "x", "--interval", "1s"][..]),
        (2, &["--lines", "x", "--cron", "* * * * *"]),
        (2, &["--json-lines"]),
        (2, &["--cron", "now and then"]),
        (2, &["--catch-up", "all"]),
        (2, &["--heartbeat", "500ms"]),
        (2, &["--demo-delay", "2s..1s"]),
        (2, &["--demo-fail", "2"]),
        (2, &["--role", "boss"]),
        (1, &["--lines", "missing"]),
        (5, &["--wait", "0", "--rport", "1"]),
    ] {
        for command in ["node", "up"] {
            if command == "up" && flags.contains(&"--role") {
                continue;
            }
            let ran = sandbox.run(&[&[command][..], if command == "up" { &["-q"] } else { &[] }, flags].concat());
            ran.expect(code).one_line();
        }
    }
    sandbox.run(&["up", "--store", "memory:", "--workers", "1"]).expect(2).one_line();
}
