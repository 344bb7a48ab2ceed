//! Programs as handlers, started by the command line: what they get, what becomes of what they print and of how they end.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod sandbox;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Ran, Running, Sandbox, below, until};

/// Programs are found where the tests find them.
fn with_path(command: &mut Command) -> &mut Command {
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default())
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    Ran::of(with_path(&mut sandbox.command(arguments)).output().unwrap())
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Running {
    sandbox.start_by(with_path(&mut sandbox.command(arguments)))
}

/// A shell script in the sandbox, and the command that runs it.
fn script(sandbox: &Sandbox, name: &str, text: &str) -> String {
    sandbox.write(name, text);
    format!("sh {}", sandbox.dir.path().join(name).display())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn errors(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let listed = sandbox.run(&["errors", "--json"]).expect(0);
    listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a process runs; one that only waits to be noticed does not.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn warm_children_are_started_without_a_message_and_others_leave_when_they_are_idle() {
    let sandbox = Sandbox::new();
    let answer = r#"while read -r line; do sleep 0.2; echo '{"event":"end"}'; done"#;
    let child = script(&sandbox, "child.sh", &format!("echo $$ >> pids\n{answer}"));
    let pids = || -> Vec<u32> {
        let text = std::fs::read_to_string(sandbox.dir.path().join("pids")).unwrap_or_default();
        text.lines().map(|it| it.parse().unwrap()).collect()
    };
    let alive = || pids().into_iter().filter(|pid| is_alive(*pid)).count();
    for flag in [["--warm", "1"], ["--idle-timeout", "1s"]] {
        let ran = run(&sandbox, &[&["node", "--exec-once", "true"], &flag[..]].concat()).expect(2);
        assert!(ran.one_line().contains(&format!("{} is for children that stay", flag[0])), "{}", ran.err);
    }
    let described = ["node", "--queue", "q", "--exec", &child, "--concurrency", "3", "--warm", "1"];
    for (arguments, all) in [([&described[..], &["--idle-timeout", "100ms"]].concat(), 6), (vec!["node"], 12)] {
        std::fs::remove_file(sandbox.dir.path().join("pids")).ok();
        let node = start(&sandbox, &arguments);
        until("one is there", || alive() == 1);
        sandbox.run(&["push", "q", "1", "2", "3", "4", "5", "6"]).expect(0);
        until("all is done", || sandbox.count("q", "done") == all);
        assert_eq!(pids().len(), 3, "others came");
        until("one is left", || alive() == 1);
        drop(node);
        until("it has ended too", || alive() == 0);
        let queue = "concurrency = 3\nwarm = 1\nidle_timeout = \"100ms\"\nmax_messages_per_child = 100\n";
        sandbox.write("baton.toml", format!("[queues.q]\nexec = {child:?}\n{queue}"));
    }
}

#[test]
fn handlers_in_four_languages_answer() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/handlers");
    for (program, file) in [("python3", "length.py"), ("node", "length.js"), ("perl", "length.pl"), ("sh", "length.sh")]
    {
        let sandbox = Sandbox::new();
        sandbox.write("lines", "a\nbb\nccc\n");
        sandbox.run(&["push", "messages", "[1]"]).expect(0);
        let exec = format!("{program} '{}'", examples.join(file).display());
        let up = ["up", "--queue", "messages", "--share-queue", "--exec", &exec, "--lines", "lines", "--until-done"];
        let ran = run(&sandbox, &up);
        // Python measures lists too; the others refuse them.
        let (code, answers): (i32, &[&str]) =
            if program == "python3" { (0, &["1", "1", "2", "3"]) } else { (3, &["1", "2", "3"]) };
        let ran = ran.expect(code);
        assert_eq!(sorted(&ran.out), answers, "{program}: {}", ran.err);
    }
}

#[test]
fn a_process_for_each_message_gets_its_body_and_what_it_needs_to_know() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        sandbox.run(&["push", "q", "\"two words\\n\"", "7", "{\"a\": [1]}"]).expect(0);
        let tell = script(
            &sandbox,
            "tell",
            "echo \"$1|$(cat)|$BATON_QUEUE|$BATON_ID|$BATON_ATTEMPT|$BATON_CRASHES|$BATON_MESSAGE_KEY\"",
        );
        let ran = run(&sandbox, &["node", "--queue", "q", "--exec-once", &tell, "--until-done"]).expect(0);
        let told: Vec<&str> = sorted(&ran.out).into_iter().map(|line| line.split('@').next().unwrap()).collect();
        assert_eq!(told, ["|7|q|2|1|0|q/2", "|two words|q|1|1|0|q/1", "|{\"a\": [1]}|q|3|1|0|q/3"]);
        sandbox.run(&["push", "q", "\"x y\"", "-1.50", "{\"a\":1}"]).expect(0);
        let ran =
            run(&sandbox, &["node", "--queue", "q", "--exec-once", "echo <{}> {}", "--allow-dash", "--until-done"])
                .expect(3);
        assert_eq!(sorted(&ran.out), ["<-1.50> -1.50", "<x y> x y"]);
        let errors = errors(&sandbox);
        assert!(
            errors[0]["error"].as_str().unwrap().contains("`{}` stands for the text of a string or a number"),
            "{errors:?}"
        );
    }
}

#[test]
fn what_processes_print_is_never_mixed() {
    let sandbox = Sandbox::new();
    sandbox.run_with(&["push", "messages", "-"], "1\n".repeat(200).as_bytes()).expect(0);
    let thrice =
        script(&sandbox, "thrice", "echo $BATON_ID; sleep 0.00$((BATON_ID % 10)); echo $BATON_ID; echo $BATON_ID");
    let ran = run(&sandbox, &["up", "--concurrency", "8", "--exec-once", &thrice, "--until-done", "-q"]);
    let ran = ran.expect(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 600);
    assert!(lines.chunks(3).all(|three| three[0] == three[1] && three[1] == three[2]), "{lines:?}");
}

#[test]
fn what_a_process_prints_may_be_more_than_a_pipe_holds_and_so_may_its_body() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(300_000);
    sandbox.run_with(&["push", "messages", "-"], format!("\"{long}\"\n\"short\"\n").as_bytes()).expect(0);
    let both = script(&sandbox, "both", "cat | tee /dev/stderr; echo");
    let ran = run(&sandbox, &["node", "--exec-once", &both, "--until-done", "-q"]).expect(0);
    assert!(sorted(&ran.out) == ["short", &long], "{} bytes", ran.out.len());
}

#[test]
fn exit_codes_decide_what_becomes_of_a_message() {
    let sandbox = Sandbox::new();
    let codes = "echo $BATON_ATTEMPT >> tries.$BATON_ID
case $BATON_ID in
  1) exit 0 ;;
  2) echo hidden; echo first >&2; echo 'no such host' >&2; exit 3 ;;
  3) kill -9 $$ ;;
  4) exit 75 ;;
  5) [ $BATON_ATTEMPT = 3 ] || exit 75 ;;
  6) exit 127 ;;
esac";
    let codes = script(&sandbox, "codes", codes);
    sandbox.run(&["push", "messages", "1", "2", "3", "4", "5", "6"]).expect(0);
    let ran = run(&sandbox, &["node", "--exec-once", &codes, "--until-done", "--backoff", "1ms"]).expect(3);
    assert_eq!(ran.out, "", "only what is done is printed");
    let told: BTreeMap<u64, String> = errors(&sandbox)
        .into_iter()
        .map(|it| (it["id"].as_u64().unwrap(), it["error"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        (2, "failed with exit code 3: no such host\nfirst\nno such host"),
        (3, "was killed by signal 9"),
        (4, "failed with exit code 75"),
        (6, "failed with exit code 127"),
    ];
    assert_eq!(told, BTreeMap::from(expected.map(|(id, error)| (id, error.to_owned()))));
    let tries = |id: u32| {
        let tried = std::fs::read_to_string(sandbox.dir.path().join(format!("tries.{id}"))).unwrap();
        tried.lines().count()
    };
    assert_eq!([1, 2, 3, 4, 5, 6].map(tries), [1, 1, 1, 11, 3, 1]);
}

#[test]
fn a_command_that_cannot_be_run_is_refused_before_anything_is_touched() {
    let sandbox = Sandbox::new();
    for (arguments, told) in [
        (["--exec", "no-such-program x"], "there is no program \"no-such-program\""),
        (["--exec-once", "/dev/null"], "/dev/null cannot be run"),
        (["--exec-once", "echo 'a"], "is not closed"),
        (["--exec", "echo {}"], "a child gets many"),
    ] {
        let ran = run(&sandbox, &[&["node"][..], &arguments].concat());
        assert!(ran.one_line().contains(told), "{}", ran.err);
        assert!(matches!(ran.code, Some(1 | 2)));
    }
    assert!(!sandbox.path().exists());
}

#[test]
fn lines_of_standard_input_are_run_each_time() {
    let sandbox = Sandbox::new();
    for lines in ["a\nb\n", "c"] {
        let up = ["up", "--lines", "-", "--exec-once", "echo {}", "--until-done"];
        let mut up = with_path(&mut sandbox.command(&up)).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut up.stdin.take().unwrap(), lines.as_bytes()).unwrap();
        let ran = Ran::of(up.wait_with_output().unwrap()).expect(0);
        assert_eq!(sorted(&ran.out), lines.lines().collect::<Vec<_>>());
        assert!(ran.err.contains("are read once"), "{}", ran.err);
    }
}

#[test]
fn on_a_stop_children_finish_and_then_their_input_ends() {
    let sandbox = Sandbox::new();
    let slow = "while read -r line; do echo > begun; sleep 0.5; echo '{\"event\":\"end\"}'; done; echo > tidied";
    let slow = script(&sandbox, "slow", slow);
    sandbox.run(&["push", "messages", "1"]).expect(0);
    let mut node = start(&sandbox, &["node", "--exec", &slow]);
    let there = |name: &str| sandbox.dir.path().join(name).exists();
    until("the child has it", || there("begun"));
    node.signal("-TERM");
    assert_eq!(node.wait(), Some(0));
    assert!(there("tidied"), "{}", sandbox.log());
    assert_eq!(sandbox.count("messages", "done"), 1);
}

#[test]
fn nothing_outlives_a_node_that_is_killed() {
    let sandbox = Sandbox::new();
    // A child with a child of its own that has left the group, and a source that is a command.
    let stubborn = script(&sandbox, "stubborn", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000; read -r line");
    sandbox.run(&["push", "messages", "1", "2", "3"]).expect(0);
    let lines_from = "echo 1; sleep 1000";
    let mut node = start(
        &sandbox,
        &[
            "node",
            "--queue",
            "messages",
            "--share-queue",
            "--exec",
            &stubborn,
            "--concurrency",
            "3",
            "--lines-from",
            lines_from,
            "--source",
            "slow",
        ],
    );
    until("they run", || {
        let names = below(node.pid())
            .into_iter()
            .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
        names.filter(|name| name.starts_with("sleep")).count() >= 7
    });
    let children = below(node.pid());
    node.kill();
    until("none of them runs", || !children.iter().any(|pid| is_alive(*pid)));

    // One that hides its mark is found by its group.
    let mut node = start(&sandbox, &["node", "--exec-once", "env -i sleep 1000", "--concurrency", "3"]);
    let sleeping = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sleep");
    until("they run", || below(node.pid()).iter().filter(|pid| sleeping(pid)).count() == 3);
    let children = below(node.pid());
    node.kill();
    until("none of them runs", || !children.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn more_children_than_files_are_made_room_for_or_refused() {
    let sandbox = Sandbox::new();
    sandbox.run_with(&["push", "messages", "-"], "1\n".repeat(300).as_bytes()).expect(0);
    let limited = |limit: &str| {
        let line = format!("{limit}; exec \"$0\" node -q --exec-once true --concurrency 100 --until-done");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line, env!("CARGO_BIN_EXE_baton")])
            .env("BATON_STORE", format!("sqlite:{}", sandbox.path().display()));
        Ran::of(shell.current_dir(sandbox.dir.path()).output().unwrap())
    };
    let refused = limited("ulimit -n 300").expect(1);
    assert!(refused.one_line().contains("100 children at once need 828 open files"), "{}", refused.err);
    limited("ulimit -Sn 300").expect(0);
    assert_eq!(sandbox.count("messages", "done"), 300);
}

#[test]
fn children_killed_at_random_cost_no_message() {
    let kills: u64 = std::env::var("BATON_KILLS").map_or(60, |it| it.parse().unwrap());
    let seed: u64 = std::env::var("BATON_SEED").map_or_else(|_| fastrand::u64(..), |it| it.parse().unwrap());
    println!("BATON_KILLS={kills} BATON_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let sandbox = Sandbox::new();
    let child = "while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; echo \"{\\\"id\\\":$id,\\\"event\\\":\\\"end\\\"}\"; done";
    let child = script(&sandbox, "child", child);
    let flags = ["--exec", &child, "--concurrency", "3", "--retries", "1000", "--backoff", "1ms", "--lease", "2s"];
    let source = ["--interval", "0", "--count", "2000000", "--max-queue-bytes", "1MiB"];
    let mut node = start(&sandbox, &[&["node"][..], &flags, &source].concat());
    for _ in 0..kills {
        let mut victim = 0;
        until("a child runs", || {
            let children = below(node.pid()).into_iter().filter(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.ends_with(b"/child\0")
            });
            let children: Vec<u32> = children.collect();
            victim = *children.get(random.usize(..children.len().max(1))).unwrap_or(&0);
            victim != 0
        });
        std::thread::sleep(std::time::Duration::from_micros(random.u64(..20_000)));
        Command::new("kill").args(["-9", &victim.to_string()]).stderr(Stdio::null()).status().unwrap();
    }
    until("no child is left unwaited for", || !below(node.pid()).into_iter().any(is_zombie));
    assert!(sandbox.count("messages", "done") > 0);
    let children = below(node.pid());
    node.kill();
    until("none of them runs", || !children.iter().any(|pid| is_alive(*pid)));
    until("what it held is back", || {
        sandbox.run(&["status", "--json"]).expect(0).json()["nodes"] == serde_json::json!([])
    });
    let end = ["node", "-q", "--until-done", "--handler", "noop"];
    sandbox.run(&end).expect(0);
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((&books["failed"], &books["done"]), (&serde_json::json!(0), &books["pushed"]));
}

#[test]
fn a_run_that_is_killed_again_and_again_does_every_line() {
    let sandbox = Sandbox::new();
    let lines: String = (0..2_000).map(|nth| format!("{nth}\n")).collect();
    sandbox.write("lines", lines);
    let out: PathBuf = sandbox.dir.path().join("out");
    let note = script(
        &sandbox,
        "note",
        "while read -r line; do id=${line#*'\"id\":'}; echo \"{\\\"event\\\":\\\"end\\\",\\\"data\\\":${id%%,*}}\"; done",
    );
    let up = ["up", "--lines", "lines", "--exec", &note, "--until-done", "--lease", "300ms", "--heartbeat", "100ms"];
    for nth in 0..20 {
        let printed = || std::fs::OpenOptions::new().create(true).append(true).open(&out).unwrap();
        let mut up = with_path(&mut sandbox.command(&up)).stdout(printed()).stderr(Stdio::null()).spawn().unwrap();
        let lines = || std::fs::read_to_string(&out).unwrap().lines().count();
        let before = lines();
        // Some are killed as they start, others at work.
        let enough = if nth % 4 == 0 { 0 } else { 40 };
        until("it is at work, or done", || lines() >= before + enough || up.try_wait().unwrap().is_some());
        up.kill().ok();
        up.wait().unwrap();
    }
    let last = with_path(&mut sandbox.command(&up)).output().unwrap();
    // Four kills may meet the same message, which then nobody can tell from one that kills its nodes: it is an error that
    // says so, and nothing else is.
    let lost = errors(&sandbox);
    assert!(lost.len() <= 2 && lost.iter().all(|error| error["crashes"] == 4), "{lost:?}");
    // It may have failed in a run before the last one, which then ends with 0.
    let code = Ran::of(last).code;
    assert!(code == Some(0) || code == Some(3) && !lost.is_empty(), "{code:?}: {lost:?}");
    if !lost.is_empty() {
        sandbox.run(&["errors", "--requeue"]).expect(0);
        Ran::of(with_path(&mut sandbox.command(&up)).output().unwrap()).expect(0);
    }
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!(
        (books["pushed"].as_u64(), books["done"].as_u64(), books["failed"].as_u64()),
        (Some(2_000), Some(2_000), Some(0))
    );
}

#[test]
fn a_run_that_is_stopped_is_not_done() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n".repeat(200));
    let up = ["up", "--lines", "lines", "--exec-once", "sleep 0.05", "--until-done", "-q"];
    let mut run = start(&sandbox, &up);
    until("it is at work", || sandbox.count("messages", "done") > 0);
    run.signal("-INT");
    assert_eq!(run.wait(), Some(1));
    assert!(sandbox.log().contains("baton: stopped before all was done: 1"), "{}", sandbox.log());
    // Nobody reads what it prints.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let up = ["up", "--lines", "lines", "--exec-once", "echo {}", "--until-done", "-q"];
    let ran = Ran::of(with_path(&mut sandbox.command(&up)).stdout(full).output().unwrap()).expect(1);
    assert!(
        ran.err.contains("cannot print the output") && ran.err.contains("stopped before all was done"),
        "{}",
        ran.err
    );
    run_to_end(&sandbox);
}

fn run_to_end(sandbox: &Sandbox) {
    run(sandbox, &["node", "--exec-once", "true", "--until-done", "-q"]).expect(0);
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!((books["failed"].as_u64(), &books["done"]), (Some(0), &books["pushed"]));
}

#[test]
fn a_new_source_runs_the_messages_of_others_only_if_that_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n2\n");
    for queue in ["messages", "named"] {
        sandbox.run(&["push", queue, "7"]).expect(0);
    }
    let up = ["up", "--lines", "lines", "--exec-once", "echo {} | wc", "--until-done", "-q"];
    let noop = ["node", "--interval", "1ms", "--count", "2", "--handler", "noop", "--until-done", "-q"];
    for command in [&up[..], &noop] {
        for queue in ["messages", "named"] {
            let ran = run(&sandbox, &[command, &["--queue", queue]].concat()).expect(1);
            let refused = format!(
                "baton: queue {queue} holds 1 message that this run did not push and would run too; add --share-queue to \
                 run them, take another --queue, or remove them: baton purge {queue}"
            );
            assert_eq!((ran.out.as_str(), ran.one_line()), ("", refused.as_str()));
        }
    }
    assert_eq!(sandbox.pushed(), 2, "nothing was done before it was refused");
    let ran = run(&sandbox, &[&up[..], &["--share-queue"]].concat()).expect(0);
    assert_eq!(sorted(&ran.out), ["1 | wc", "2 | wc", "7 | wc"]);
    assert!(ran.err.contains("no shell reads the command, so | is a word like any other"), "{}", ran.err);
    assert!(ran.err.contains("queue messages holds 1 message that this run did not push and runs too"), "{}", ran.err);
    // The same run goes on without a question, whatever waits; so does a file that describes the queue.
    sandbox.run(&["push", "messages", "8"]).expect(0);
    assert_eq!(run(&sandbox, &[&up[..], &["--rewind"]].concat()).expect(0).out.lines().count(), 3);
    sandbox.write("baton.toml", "[queues.named]\nexec_once = \"echo {}\"\n");
    let described = ["up", "--lines", "lines", "--until-done", "-q"];
    assert_eq!(sorted(&run(&sandbox, &described).expect(0).out), ["1", "2", "7"]);
    std::fs::remove_file(sandbox.dir.path().join("baton.toml")).unwrap();
    sandbox.run(&["push", "q", "7"]).expect(0);
    let quiet = [
        "up",
        "--lines",
        "lines",
        "--source",
        "anew",
        "--queue",
        "own",
        "--exec-once",
        "echo {}",
        "--until-done",
        "-q",
    ];
    assert_eq!(run(&sandbox, &quiet).expect(0).err, "");
}

#[test]
fn results_are_printed_with_a_line_end_each() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n2\n3\n");
    let up = ["up", "--lines", "lines", "--until-done", "-q", "--exec-once"];
    assert_eq!(sorted(&run(&sandbox, &[&up[..], &["printf %s {}"]].concat()).expect(0).out), ["1", "2", "3"]);
    let of = |queue: &'static str, command: &'static str| {
        let ran = run(&sandbox, &[&up[..], &[command, "--queue", queue]].concat());
        ran.expect(0).out
    };
    assert_eq!(of("ended", "echo x"), "x\nx\nx\n");
    assert_eq!(of("blank", "printf x\\\\n\\\\n"), "x\n\nx\n\nx\n\n");
    assert_eq!(of("empty", "true"), "");
}

#[test]
fn messages_that_fail_for_good_are_in_the_log() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "messages", "1"]).expect(0);
    let crash = script(&sandbox, "crash", "echo 'Traceback:' >&2; echo '  deep' >&2; echo 'KeyError: no' >&2; exit 1");
    let ran = run(&sandbox, &["node", "--exec-once", &crash, "--until-done"]).expect(3);
    let told = "messages/1 failed for good: failed with exit code 1: KeyError: no; see `baton errors messages` fleet=";
    assert!(ran.err.contains(told), "{}", ran.err);
    let groups = sandbox.run(&["errors", "--group"]).expect(0).out;
    assert!(groups.contains("failed with exit code 1: KeyError: no"), "{groups}");
}

#[test]
fn a_body_never_becomes_code_of_a_shell() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "q", "\"x; touch harm\""]).expect(0);
    let node = |command: &str| run(&sandbox, &["node", "--queue", "q", "--exec-once", command, "--until-done"]);
    let told = "{} inside the text of sh -c would be run as code; write sh -c 'cmd \"$1\"' sh {}";
    for command in ["sh -c \"echo {}\"", "/bin/bash -ec 'echo {}'"] {
        assert!(node(command).expect(2).one_line().ends_with(told));
    }
    sandbox.write("baton.toml", "[queues.q]\nexec_once = \"sh -c 'echo {}'\"\n");
    let checked = sandbox.run(&["config", "--check"]).expect(2);
    assert!(checked.one_line().contains(&format!("2:13: exec_once of queue q: {told}")), "{}", checked.err);
    std::fs::remove_file(sandbox.dir.path().join("baton.toml")).unwrap();
    assert_eq!(node("sh -c 'echo \"$1\"' sh {}").expect(0).out, "x; touch harm\n");
    assert!(!sandbox.dir.path().join("harm").exists());
}

#[test]
fn that_no_shell_reads_a_command_is_said_where_none_does() {
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "q", "1"]).expect(0);
    sandbox.run(&["node", "--queue", "q", "--handler", "noop", "--until-done"]).expect(0);
    let said = |command: &str| {
        let ran = run(&sandbox, &["node", "--queue", "q", "--exec-once", command, "--until-done"]).expect(0);
        let line = ran.err.lines().find(|line| line.contains("no shell reads the command")).map(str::to_owned);
        line.unwrap_or_default()
    };
    assert!(said("echo $HOME").contains("so $HOME is a word like any other"));
    assert!(said("echo a >> b").contains("so >> is a word like any other"));
    assert_eq!(said("sh -c 'echo a >> b' > c"), "");
    assert_eq!(said("echo '$HOME' \\*"), "");
}
