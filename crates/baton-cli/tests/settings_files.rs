//! The fleet's file and the user's: what goes before what, and every mistake by its place.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use sandbox::{Ran, Sandbox};
use serde_json::json;

/// The settings in force, with none of them in a variable but those given.
fn in_force(sandbox: &Sandbox, flags: &[&str], variables: &[(&str, &str)]) -> serde_json::Value {
    let mut command = sandbox.command(&[&["config", "--json"][..], flags].concat());
    command.env_remove("BATON_STORE").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(sandbox: &Sandbox) -> Ran {
    sandbox.run(&["config", "--check"])
}

#[test]
fn a_flag_goes_before_the_environment_before_the_fleets_file_before_the_users_before_the_default() {
    let sandbox = Sandbox::new();
    let store = format!("sqlite:{}", sandbox.dir.path().join(".local/state/baton/baton.db").display());
    assert_eq!(in_force(&sandbox, &[], &[])["store"], json!({"value": store, "from": "default"}));
    let folder = sandbox.dir.path().join(".config/baton");
    std::fs::create_dir_all(&folder).unwrap();
    let user = folder.join("config.toml");
    let user_path = user.display().to_string();
    std::fs::write(&user, "store = \"sqlite:users.db\"\nfleet = \"users\"\nwait = 1\nmax_keys = 5_000\n").unwrap();
    let shown = in_force(&sandbox, &[], &[]);
    let users = folder.join("users.db").display().to_string();
    assert_eq!(shown["store"], json!({"value": format!("sqlite:{users}"), "from": "file", "file": user_path}));
    assert_eq!(shown["max_results"], json!({"value": 256 << 20, "from": "default"}));

    let fleet = "store = \"redis://u:secret@h/1\"\nfleet = \"fleets\"\nwait = 2.5\nmax_results = \"1GiB\"\n";
    sandbox.write("baton.toml", fleet);
    let variables = [("BATON_FLEET", "variables"), ("BATON_KEY_LIFETIME", "90m")];
    let shown = in_force(&sandbox, &["--wait", "7"], &variables);
    assert_eq!(shown["store"], json!({"value": "redis://u:***@h/1", "from": "file", "file": "baton.toml"}));
    assert_eq!(shown["fleet"], json!({"value": "variables", "from": "environment"}));
    assert_eq!(shown["wait"], json!({"value": 7.0, "from": "flag"}));
    assert_eq!(shown["max_keys"], json!({"value": 5000, "from": "file", "file": user_path}));
    assert_eq!(shown["max_results"], json!({"value": 1 << 30, "from": "file", "file": "baton.toml"}));
    assert_eq!(shown["key_lifetime"], json!({"value": 5400.0, "from": "environment"}));
    let files = json!([{"path": "baton.toml", "read": true}, {"path": user_path, "read": true}]);
    assert_eq!(shown["files"], files);

    // A file that is named goes in the place of the one that lies here; the flag before the variable.
    sandbox.write("one.toml", "fleet = \"one\"\n");
    sandbox.write("two.toml", "fleet = \"two\"\n");
    let shown = in_force(&sandbox, &[], &[("BATON_CONFIG", "one.toml")]);
    assert_eq!((&shown["fleet"]["value"], &shown["wait"]["value"]), (&json!("one"), &json!(1.0)));
    let shown = in_force(&sandbox, &["--config", "two.toml"], &[("BATON_CONFIG", "one.toml")]);
    assert_eq!(shown["fleet"], json!({"value": "two", "from": "file", "file": "two.toml"}));
    let table = sandbox.run(&["config"]).expect(0).out;
    assert!(table.contains("fleets") && table.contains("baton.toml") && table.contains(&user_path), "{table}");
}

#[test]
fn a_settings_file_of_former_releases_is_told_and_not_passed_over() {
    let sandbox = Sandbox::new();
    let folder = sandbox.dir.path().join(".config/baton");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), "{\"store\":\"memory:\"}").unwrap();
    let line = sandbox.run(&["status"]).expect(2).one_line().to_owned();
    assert!(
        line.contains("config.json is no longer read, because settings are TOML; write each of its keys"),
        "{line}"
    );
    std::fs::write(folder.join("config.toml"), "[queues.a]\nhandler = \"noop\"\n").unwrap();
    let line = sandbox.run(&["status"]).expect(2).one_line().to_owned();
    assert!(line.contains("config.toml:1:2: the user's file takes no queues; write that in a baton.toml"), "{line}");
    std::fs::write(folder.join("config.toml"), "store = \"memory:\"\n").unwrap();
    assert_eq!(in_force(&sandbox, &[], &[])["store"]["value"], "memory:");
}

#[test]
fn mistakes_in_settings_are_told_by_their_place() {
    let sandbox = Sandbox::new();
    for (text, told) in [
        ("{\"store\":\"memory:\"}", "1:1: this is JSON, and settings are TOML; write each of its keys as a line"),
        ("[[[", "1:3: this is not TOML: "),
        ("stoer = \"memory:\"", "1:1: unknown key \"stoer\"; did you mean store?"),
        ("\n  store = \"x\"", "2:11: store: \"x\" is not a store: it names no scheme; use sqlite:PATH"),
        ("fleet = \"a b\"", "1:9: fleet: the name \"a b\" is not usable"),
        ("wait = true", "1:8: wait: text or a number is expected, not true or false; correct the file"),
        ("wait = -1", "1:8: wait: \"-1\" is no duration"),
        ("max_keys = 0", "1:12: max_keys: \"0\" is no number: write 1 or more, in digits; correct the file"),
        ("max_keys = 1.5", "1:12: max_keys: \"1.5\""),
        ("max_results = \"1XiB\"", "1:15: max_results: \"1XiB\" has an unknown unit"),
        ("key_lifetime = \"400d\"", "1:16: key_lifetime: \"400d\" is longer than 366 days"),
        ("key_lifetime = \"0\"", "1:16: key_lifetime: \"0\" is less than a millisecond"),
    ] {
        sandbox.write("baton.toml", text);
        for command in [&["status"][..], &["config", "--check"]] {
            let ran = sandbox.run(command).expect(2);
            assert!(ran.one_line().starts_with(&format!("baton: baton.toml:{told}")), "{text}: {}", ran.err);
        }
    }
    sandbox.write("baton.toml", b"\xff");
    assert!(sandbox.run(&["status"]).expect(2).one_line().contains("baton.toml is not usable: it is not UTF-8"));
    sandbox.write("baton.toml", "#".repeat(200_000));
    assert!(sandbox.run(&["status"]).expect(2).one_line().contains("it has 200000 bytes, 102400 at most"));
    assert!(sandbox.run(&["status", "--config", "missing.toml"]).expect(2).one_line().contains("missing.toml"));
}

#[test]
fn mistakes_in_a_description_are_told_by_their_place_and_with_the_near_name() {
    let sandbox = Sandbox::new();
    let queue = "[queues.fetch]\nhandler = \"noop\"\n";
    for (text, told) in [
        ("[queues.fetch]\n", "1:9: queue fetch has nothing to do; add exec, exec_once or handler"),
        ("[queues.fetch]\nhandler = \"nop\"\n", "2:11: queue fetch: unknown handler \"nop\"; did you mean noop?"),
        (
            "[queues.fetch]\nhandler = \"fetch\"\n",
            "2:11: queue fetch: unknown handler \"fetch\"; there are demo, noop, subset-sum, none",
        ),
        ("[queues.fetch]\nexec = \"\"\n", "2:8: exec of queue fetch: "),
        (
            "[queues.fetch]\nexec = \"x {}\"\n",
            "2:8: exec of queue fetch: {} stands for one message, and a child gets many",
        ),
        (
            "[queues.fetch]\nexec_once = \"x\"\nmax_messages_per_child = 5",
            "3:26: max_messages_per_child of queue fetch is for exec; leave it out",
        ),
        ("[queues.fetch]\nexec_once = \"x\"\nwarm = 5", "3:8: warm of queue fetch is for exec; leave it out"),
        ("[queues.fetch]\nexec = \"x\"\nidle_timeout = 5", "3:16: idle_timeout of queue fetch: \"5\" has no unit"),
        (
            "[queues.fetch]\nhandler = \"noop\"\nmax_memory_per_child = 5",
            "3:24: max_memory_per_child of queue fetch is for exec and exec_once",
        ),
        ("[queues.fetch]\nhandler = \"noop\"\nexec = \"x\"", "3:8: queue fetch has both handler and exec; leave one"),
        ("[queues.\"a b\"]\nhandler = \"noop\"\n", "1:9: queue: the name \"a b\" is not usable"),
        ("queues = 5\n", "1:10: queues is no table; describe each under [queues.NAME]"),
        ("[queue.fetch]\n", "1:2: unknown key \"queue\"; did you mean queues?"),
        (
            "[queues.fetch]\nhandler = \"noop\"\nretires = 3",
            "3:1: unknown key \"retires\" of queue fetch; did you mean retries?",
        ),
        (
            "[queues.fetch]\nhandler = \"noop\"\nretries = -3",
            "3:11: retries of queue fetch: \"-3\" is no whole number from 0",
        ),
        (
            "[queues.fetch]\nhandler = \"noop\"\nretries = \"2\"",
            "3:11: retries of queue fetch: a number is expected, not text; correct the file",
        ),
        (
            "[queues.fetch]\nhandler = \"noop\"\nconcurrency = 0",
            "3:15: concurrency of queue fetch: \"0\" is no whole number",
        ),
        ("[queues.fetch]\nhandler = \"noop\"\nbackoff = 5", "3:11: backoff of queue fetch: \"5\" has no unit"),
        ("[queues.fetch]\nhandler = \"noop\"\ntimeout = 0", "3:11: timeout of queue fetch: 0 lets no attempt end"),
        ("[queues.fetch]\nhandler = \"noop\"\ndemo_fail = 1", "3:13: demo_fail of queue fetch is for the handler demo"),
        ("[queues.fetch]\nhandler = \"demo\"\ndemo_fail = 2", "3:13: demo_fail of queue fetch: \"2\" is no share"),
    ] {
        expect_mistake(&sandbox, text, told);
    }
    for (source, told) in [
        ("queue = \"fetch\"", "3:10: source s has nothing to send; add interval, lines, lines_from or cron"),
        ("interval = \"1s\"", "3:10: source s names no queue to feed; add queue = \"fetch\""),
        (
            "queue = \"fecth\"\ninterval = \"1s\"",
            "4:9: source s feeds queue fecth, which is not described; did you mean fetch?",
        ),
        (
            "queue = \"x\"\ninterval = \"1s\"",
            "4:9: source s feeds queue x, which is not described; describe it under [queues.x]",
        ),
        ("queue = \"fetch\"\ninterval = \"soon\"", "5:12: interval of source s: \"soon\" is no duration"),
        ("queue = \"fetch\"\ncron = \"now and then\"", "5:8: cron of source s: \"now and then\" is no cron expression"),
        (
            "queue = \"fetch\"\ncron = \"@daily\"\ncatch_up = \"al\"",
            "6:12: catch_up of source s: \"al\" is none of skip, once, all",
        ),
        (
            "queue = \"fetch\"\ninterval = \"1s\"\ncatch_up = \"all\"",
            "6:12: catch_up of source s is for cron; leave it out",
        ),
        ("queue = \"fetch\"\ninterval = \"1s\"\nfollow = true", "6:10: follow of source s is for lines; leave it out"),
        (
            "queue = \"fetch\"\nlines = \"x\"\nfollow = \"yes\"",
            "6:10: follow of source s: true or false is expected, not text",
        ),
        (
            "queue = \"fetch\"\nlines = \"x\"\ncron = \"@daily\"",
            "6:8: source s has both lines and cron; leave one of them out",
        ),
        ("queue = \"fetch\"\ninterval = \"1s\"\ncount = 0", "6:9: count of source s: \"0\" is no number"),
        (
            "queue = \"fetch\"\ncrom = \"@daily\"\ncron = \"@daily\"",
            "5:1: unknown key \"crom\" of source s; did you mean cron?",
        ),
    ] {
        expect_mistake(&sandbox, &format!("{queue}[sources.s]\n{source}\n"), told);
    }
    // What only looks at the fleet goes on.
    sandbox.run(&["push", "messages", "1"]).expect(0);
    sandbox.run(&["status"]).expect(0);
    // All are told at once.
    sandbox.write("baton.toml", "[queues.a]\nhandler = \"nop\"\nretires = 1\n[sources.s]\n");
    let all = check(&sandbox).expect(2);
    assert_eq!((all.err.lines().count(), all.out.as_str()), (4, ""), "{}", all.err);
    let ran = sandbox.run(&["up"]).expect(2);
    assert!(ran.one_line().ends_with("; did you mean noop? (3 more: `baton config --check`)"), "{}", ran.err);
    sandbox.write("baton.toml", queue);
    assert_eq!(check(&sandbox).expect(0).out, "baton.toml: 1 queue, 0 sources\n");
}

#[track_caller]
fn expect_mistake(sandbox: &Sandbox, text: &str, told: &str) {
    sandbox.write("baton.toml", text);
    let ran = check(sandbox).expect(2);
    assert!(ran.one_line().starts_with(&format!("baton: baton.toml:{told}")), "{text}: {}", ran.err);
    assert_eq!(ran.out, "");
}

#[test]
fn mistakes_of_queues_and_sources_are_told_beside_those_of_the_settings() {
    let sandbox = Sandbox::new();
    sandbox.write("fleet.toml", "stor = \"memory:\"\nwait = \"soon\"\n[queues.a]\nhandler = \"nop\"\n[sources.s]\n");
    let all = sandbox.run(&["--config", "fleet.toml", "config", "--check"]).expect(2).err;
    let places: Vec<&str> =
        all.lines().filter_map(|line| line.split("fleet.toml:").nth(1)?.split(": ").next()).collect();
    assert_eq!(places, ["1:1", "2:8", "4:11", "5:10", "5:10"], "{all}");
    let ran = sandbox.run(&["--config", "fleet.toml", "up"]).expect(2);
    assert!(ran.one_line().ends_with("(1 more: `baton --config fleet.toml config --check`)"), "{}", ran.err);
}

#[test]
fn programs_and_lines_that_are_not_here_are_warned_of() {
    let sandbox = Sandbox::new();
    let fleet = "[queues.a]\nexec = \"no-such-program\"\n[sources.s]\nqueue = \"a\"\nlines = \"gone.txt\"\n";
    sandbox.write("baton.toml", fleet);
    let told = sandbox.run(&["config", "--check"]).expect(0).err;
    assert!(told.contains("warning: queue a: there is no program \"no-such-program\""), "{told}");
    assert!(told.contains("warning: source s: cannot read gone.txt: "), "{told}");
}

#[test]
fn words_for_a_shell_and_a_store_without_its_folder_are_warned_of() {
    let sandbox = Sandbox::new();
    sandbox.write("baton.toml", "store = \"sqlite:away/fleet.db\"\n[queues.a]\nexec_once = \"/bin/echo {} > out\"\n");
    let output = sandbox.command(&["config", "--check"]).env_remove("BATON_STORE").output().unwrap();
    let told = Ran::of(output).expect(0).err;
    let folder = std::fs::canonicalize(sandbox.dir.path()).unwrap().join("away");
    let store = format!("baton: warning: there is no folder {} for the store fleet.db\n", folder.display());
    let shell = "baton: warning: queue a: no shell reads the command, so > is a word like any other; sh -c";
    assert!(told.contains(&store) && told.contains(shell) && told.lines().count() == 2, "{told}");
    // That of the default store is made when it is needed.
    sandbox.write("baton.toml", "[queues.a]\nhandler = \"noop\"\n");
    let output = sandbox.command(&["config", "--check"]).env_remove("BATON_STORE").output().unwrap();
    assert_eq!(Ran::of(output).expect(0).err, "");
}

#[test]
fn the_file_in_the_help_can_be_pasted_from_a_terminal_of_80_columns_and_more() {
    let sandbox = Sandbox::new();
    for columns in ["80", "100", "200"] {
        let output = sandbox.command(&["config", "--help"]).env("COLUMNS", columns).output().unwrap();
        let help = Ran::of(output).expect(0).out;
        let (_, file) = help.split_once("all keys of each kind:\n").unwrap();
        assert!(file.lines().all(|line| line.chars().count() < 80), "{columns}: {file}");
        sandbox.write("baton.toml", file);
        let told = check(&sandbox).expect(0).out;
        assert_eq!(told, "baton.toml: 1 queue, 1 source\n", "{columns}: {file}");
        for key in ["exec_once", "demo_delay", "demo_fail", "lines_from", "catch_up", "interval", "cron"] {
            assert!(file.contains(&format!("{key} = ")), "{key}");
        }
    }
}

#[test]
fn a_calendar_that_is_none_is_told_by_its_field_or_the_name_that_was_meant() {
    let sandbox = Sandbox::new();
    let told = |cron: &str| sandbox.run(&["node", "--handler", "noop", "--cron", cron]).expect(2).one_line().to_owned();
    let hour = "--cron: \"0 25 * * *\" is no cron expression: its hour, \"25\", is not made of 0 to 23; write minute";
    assert!(told("0 25 * * *").contains(hour), "{}", told("0 25 * * *"));
    assert!(told("@dayly").ends_with("there is no such name; did you mean @daily?"), "{}", told("@dayly"));
}
