//! Whatever is wrong with a command line, a setting or a body: the right code, one line, nothing stored.

mod sandbox;

use std::os::unix::fs::PermissionsExt as _;

use sandbox::Sandbox;

#[test]
fn bad_command_lines_and_settings_are_refused() {
    let sandbox = Sandbox::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["frobnicate"], 2, "frobnicate"),
        (&["push", "messages"], 2, "nothing to push"),
        (&["push", "messages", "-", "-"], 2, "named twice"),
        (&["push", "a b", "1"], 2, "\"a b\""),
        (&["push", ".", "1"], 2, "\".\" is not usable"),
        (&["push", "..", "1"], 2, "not . or .. alone"),
        (&["node", "--handler", "noop", "--queue", ".."], 2, "not . or .. alone"),
        (&["errors", ".", "--wait", "0"], 2, "not . or .. alone"),
        (&["push", "messages", "1", "--resume", ""], 2, "key"),
        (&["push", "messages", "1", "--max-body", "0"], 2, "--max-body"),
        (&["push", "messages", "1", "--max-body", "1TiB"], 2, "32MiB"),
        (&["push", "messages", "1", "--getErrors"], 2, "--getErrors"),
        (&["push", "messages", "1", "--fleet", "{x}"], 2, "{x}"),
        (&["push", "messages", "1", "--store", "mysql://h/"], 2, "unknown scheme"),
        (&["push", "messages", "1", "--store", "redis://u:secret@h/x"], 2, "database number"),
        (&["push", "messages", "1", "--store", "memory:", "--rport", "1"], 2, "--rhost"),
        (&["push", "messages", "1", "--rhost", "a/b"], 2, "not a host"),
        (&["push", "messages", "1", "--rport", "65536"], 2, "65536"),
        (&["push", "messages", "1", "--rdb", "-1"], 2, "-1"),
        (&["push", "messages", "1", "--wait", "99999999999999999999"], 2, "a day"),
        (&["push", "messages", "1", "--wait", "-1"], 2, "-1"),
        (&["push", "messages", "1", "--config", "missing.toml"], 2, "missing.toml"),
        (&["errors", "--limit", "0"], 2, "0"),
        (&["errors", "--remove", "--requeue"], 2, "--requeue"),
        (&["errors", "--remove", "--group"], 2, "--group"),
        (&["errors", "a", "a"], 2, "unexpected argument"),
        (&["push"], 2, "no queue is named; name the queue first, as in `baton push messages '{\"a\":1}'`"),
        (&["push", "{\"a\":1}"], 2, "name the queue first, as in"),
        (&["push", "-"], 2, "name the queue first, as in"),
        (&["node", "--handler", "noop", "--queue", "a", "--queue", "a"], 2, "--queue"),
        (&["node", "--handler", "noop", "--source", "a", "--source", "a"], 2, "--source"),
        (&["up", "--handler", "noop", "--queue", "a", "--queue", "b"], 2, "--queue"),
        (&["source", "remove"], 2, "NAME"),
        (&["source"], 2, "source"),
        (&["audit", "--max-hold", "5"], 2, "unit"),
        (&["destroy"], 2, "--yes"),
        (&["purge"], 2, "no queue is named"),
        (&["purge", "mail"], 2, "--yes"),
        (&["purge", "mail", "--dry-run", "--yes"], 2, "--yes"),
        (&["push", "messages", "--file", "missing"], 1, "missing"),
        (&["push", "messages", "--file", "."], 1, "directory"),
        (&["push", "messages", ""], 1, "argument 1"),
        (&["push", "messages", "1", "{\"a\":}"], 1, "argument 2"),
        (&["push", "messages", "1 2"], 1, "argument 1"),
        (
            &["push", "messages", "1", "\"123456789\"", "--max-body", "10"],
            1,
            "argument 2 is over the limit of 10 bytes",
        ),
        (&["status", "--wait", "0"], 5, "baton.db"),
        (&["errors", "--wait", "0"], 5, "baton.db"),
        (&["pause", "messages", "--wait", "0"], 5, "baton.db"),
        (&["source", "list", "--wait", "0"], 5, "baton.db"),
        (&["destroy", "--yes", "--wait", "0"], 5, "baton.db"),
        (&["push", "messages", "1", "--rport", "1", "--wait", "0"], 5, "127.0.0.1:1"),
    ];
    for (arguments, code, hint) in cases {
        let ran = sandbox.run(arguments);
        assert_eq!(ran.code, Some(*code), "{arguments:?}: {}", ran.err);
        assert!(ran.one_line().contains(hint), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("secret"), "{}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
        assert!(!sandbox.path().exists(), "{arguments:?} made a store");
    }
}

#[test]
fn what_was_probably_meant_or_where_to_read_is_said_and_nothing_that_is_far_off() {
    let sandbox = Sandbox::new();
    for (line, told) in [
        ("pause --queue mail", "'--queue' found; the queue is named without a flag: `baton pause mail`"),
        ("errors --queue mail", "'--queue' found; the queue is named without a flag: `baton errors mail`"),
        ("push -q 1", "'-q' found; see `baton push --help`"),
        ("status --watch", "'--watch' found; see `baton status --help`"),
        ("error", "'error'; did you mean `baton errors`?"),
        ("sales load", "see `baton sales load --help`"),
    ] {
        let ran = sandbox.run(&line.split(' ').collect::<Vec<_>>()).expect(2);
        assert!(ran.one_line().ends_with(told) && !ran.err.contains("tip"), "{line}: {}", ran.err);
    }
}

#[test]
fn bad_lines_are_refused_by_their_number() {
    let sandbox = Sandbox::new();
    let long = format!("1\n\"{}\"\n", "x".repeat(3 << 20));
    let cases: &[(&[u8], &str)] = &[
        (b"1\n\n2\n{bad}\n3\n", "line 4 of standard input is not JSON"),
        (b"\"\xff\"\n", "line 1 of standard input is not UTF-8"),
        (b"1\r\n2 3\r\n", "line 2 of standard input"),
        (b"[1", "line 1 of standard input"),
        (long.as_bytes(), "line 2 of standard input is over the limit of 1048576 bytes"),
    ];
    for (input, hint) in cases {
        let ran = sandbox.run_with(&["push", "messages", "-"], input).expect(1);
        assert!(ran.one_line().contains(hint), "{}", ran.err);
        assert!(ran.one_line().ends_with("; nothing was stored; correct it and push again"), "{}", ran.err);
        assert!(!sandbox.path().exists());
    }
    for (line, is_plain) in [("hello world\n", true), ("{a:1}\n", false), ("\"1234567890\"\n", false)] {
        let ran = sandbox.run_with(&["push", "messages", "-", "--max-body", "11"], line.as_bytes()).expect(1);
        let told =
            ran.one_line().contains("(a text stands in quotes, as \"hello\"; `baton up --lines FILE` takes plain");
        assert_eq!(told, is_plain, "{}", ran.err);
    }
}

#[test]
fn lines_before_a_bad_one_are_told() {
    let sandbox = Sandbox::new();
    let mut input: String = (0..5000).map(|n| format!("{n}\n")).collect();
    input += "bad\n";
    std::fs::write(sandbox.dir.path().join("in"), input).unwrap();
    let ran = sandbox.run(&["push", "messages", "--file", "in"]).expect(1);
    let stored = sandbox.pushed();
    assert!(stored > 0 && stored < 5000);
    assert!(ran.one_line().contains(&format!("{stored} lines are stored")), "{}", ran.err);
    assert!(ran.err.ends_with("correct it and push the rest\n"), "{}", ran.err);
}

#[test]
fn an_error_about_a_store_names_one_cause_and_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.write("junk.db", "x".repeat(5000));
    let (junk, place) = (sandbox.dir.path().join("junk.db"), sandbox.dir.path().display());
    let junk = junk.display();
    let (flag, pushed) = (["--store", "sqlite:junk.db"], "; nothing was stored; choose another path, then push again");
    for (arguments, next) in [(&["push", "messages", "1"][..], pushed), (&["audit", "--deep"], "; choose another path")]
    {
        let ran = sandbox.run(&[arguments, &flag].concat()).expect(5);
        assert_eq!(ran.one_line(), format!("baton: the store cannot be used: {junk} is not a Baton store{next}"));
    }
    let ran = sandbox.run(&["status"]).expect(5);
    let missing = format!("baton: no store at {place}/baton.db yet; start a node, or name another with --store");
    assert_eq!(ran.one_line(), missing);
    let output = sandbox.command(&["status"]).env("BATON_STORE", "nonsense").output();
    let told = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    assert!(told.starts_with("baton: BATON_STORE: \"nonsense\" is not a store"), "{told}");
    let ran = sandbox.run(&["status", "--store", "nonsense"]).expect(2);
    assert!(
        ran.one_line()
            .ends_with("it names no scheme; use sqlite:PATH, redis://HOST:PORT/DB, rediss://HOST:PORT/DB or memory:"),
        "{}",
        ran.err
    );
}

#[test]
fn a_store_that_a_slip_in_its_path_made_is_told() {
    let sandbox = Sandbox::new();
    let push = ["push", "messages", "1", "--store", "sqlite:typo.db"];
    assert_eq!(sandbox.run(&push).expect(0).err, "baton: a new store was made: sqlite:typo.db\n");
    assert_eq!(sandbox.run(&push).expect(0).err, "baton: no node works for queue messages in sqlite:typo.db\n");
    let node =
        ["node", "--handler", "noop", "--interval", "0", "--count", "1", "--until-done", "--store", "sqlite:other.db"];
    let told = " a new store was made: sqlite:other.db fleet=";
    assert!(sandbox.run(&node).expect(0).err.contains(told));
    assert!(!sandbox.run(&node).expect(0).err.contains(told));
}

#[test]
fn no_folder_is_made_for_a_store_but_that_of_the_default_one() {
    let sandbox = Sandbox::new();
    for command in [&["push", "messages", "1"][..], &["node", "--handler", "noop"], &["up", "--demo"]] {
        let ran = sandbox.run(&[command, &["--store", "sqlite:typo/deep/baton.db"]].concat()).expect(5);
        let folder = std::fs::canonicalize(sandbox.dir.path()).unwrap().join("typo/deep");
        let cause = format!("the store cannot be used: there is no folder {} for baton.db; ", folder.display());
        let line = ran.one_line();
        assert!(line.contains(&cause) && line.contains("make it, or name another store"), "{command:?} {line}");
    }
    assert!(!sandbox.dir.path().join("typo").exists());
    let default = sandbox.command(&["push", "messages", "1"]).env_remove("BATON_STORE").output().unwrap();
    assert!(default.status.success(), "{default:?}");
    let folder = sandbox.dir.path().join(".local/state/baton");
    assert!(folder.join("baton.db").exists());
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "its owner's alone");
}

#[test]
fn the_help_of_status_explains_the_roles_and_what_is_in_flight() {
    let help = Sandbox::new().run(&["status", "--help"]).expect(0).out;
    assert!(help.contains("A generator holds the baton"), "{help}");
    assert!(help.contains("were fetched ahead"), "{help}");
}

#[test]
fn flags_that_no_command_has_a_use_for_are_not_in_its_help() {
    let sandbox = Sandbox::new();
    let help = |command| sandbox.run(&[command, "--help"]).expect(0).out;
    assert!(!help("status").contains("--max-keys") && help("config").contains("--max-keys"));
    assert!(help("push").contains("does not expire"));
    sandbox.run(&["push", "messages", "1", "--max-keys", "7", "--key-lifetime", "1h"]).expect(0);
}

#[test]
fn help_is_laid_out_for_the_terminal() {
    let sandbox = Sandbox::new();
    let commands = [
        "up", "node", "push", "errors", "audit", "status", "stats", "source", "pause", "resume", "stop", "destroy",
        "purge", "backup", "restore", "bench", "config",
    ];
    for command in commands {
        let help = sandbox.run(&[command, "--help"]).expect(0).out;
        assert!(!help.contains('\\'), "{help}");
        // A line that was wrapped by hand and again by the terminal leaves a word or two on a line of their own.
        let paragraph = |line: &&str| !line.starts_with(' ') && !line.is_empty() && !line.ends_with([':', '.']);
        let lines: Vec<&str> = help.lines().collect();
        for two in lines.windows(2) {
            let [one, next] = two else { continue };
            let torn = paragraph(one) && paragraph(next) && one.len() < 60 && !one.ends_with('}');
            assert!(!torn, "{command}: {one:?} {next:?}");
        }
    }
}
