//! The file of tokens: what stands in its place, whether a new token was seen, and the order of writes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use sandbox::{Ran, Sandbox};

const ADD: [&str; 5] = ["token", "add", "ci", "--tokens", "tokens.json"];
const LIST: [&str; 4] = ["token", "list", "--tokens", "tokens.json"];

fn fifo(sandbox: &Sandbox, name: &str) {
    assert!(Command::new("mkfifo").arg(sandbox.dir.path().join(name)).status().unwrap().success());
}

/// Runs a command that may hang, for some seconds at most.
fn within(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut child = sandbox.command(arguments).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{arguments:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn what_is_no_regular_file_is_neither_followed_nor_waited_for() {
    let sandbox = Sandbox::new();
    let path = |name: &str| sandbox.dir.path().join(name);
    sandbox.write("precious", "of somebody else");
    symlink(path("precious"), path("tokens.json.lock")).unwrap();
    let ran = within(&sandbox, &ADD).expect(1);
    assert!(ran.one_line().contains("tokens.json.lock is a symbolic link"), "{}", ran.err);
    fs::remove_file(path("tokens.json.lock")).unwrap();
    fifo(&sandbox, "tokens.json.lock");
    let ran = within(&sandbox, &ADD).expect(1);
    assert!(ran.one_line().contains("tokens.json.lock is not a regular file"), "{}", ran.err);
    fs::remove_file(path("tokens.json.lock")).unwrap();
    // What lies in the way of the next file is taken away, and not what it leads to.
    symlink(path("precious"), path("tokens.json.new")).unwrap();
    within(&sandbox, &ADD).expect(0);
    // Reading goes by a link; a change would replace the link and leave the file as it is.
    fs::rename(path("tokens.json"), path("real.json")).unwrap();
    symlink(path("real.json"), path("tokens.json")).unwrap();
    assert!(within(&sandbox, &LIST).expect(0).out.contains("ci"));
    let ran = within(&sandbox, &["token", "revoke", "ci", "--tokens", "tokens.json"]).expect(1);
    assert!(ran.one_line().contains("tokens.json is a symbolic link"), "{}", ran.err);
    fs::remove_file(path("tokens.json")).unwrap();
    fifo(&sandbox, "tokens.json");
    let up = ["up", "--queue", "q", "--handler", "noop", "--listen", "0", "--tokens", "tokens.json"];
    for arguments in [&LIST[..], &ADD, &up] {
        let ran = within(&sandbox, arguments).expect(1);
        assert!(ran.one_line().contains("tokens.json is not a regular file"), "{}", ran.err);
    }
    assert_eq!(fs::read_to_string(path("precious")).unwrap(), "of somebody else");
}

#[test]
fn a_named_file_that_is_not_there_starts_no_gateway_and_a_link_that_leads_nowhere_starts_none() {
    let sandbox = Sandbox::new();
    let up = ["up", "--queue", "q", "--handler", "noop", "--listen", "0"];
    let named = [&up[..], &["--tokens", "tokens.json"]].concat();
    let ran = within(&sandbox, &named).expect(2);
    assert!(ran.one_line().contains("make it with `baton token add NAME --tokens tokens.json`"), "{}", ran.err);
    symlink("nowhere", sandbox.dir.path().join("tokens.json")).unwrap();
    let ran = within(&sandbox, &named).expect(1);
    assert!(ran.one_line().contains("tokens.json is a symbolic link that leads nowhere"), "{}", ran.err);
    let state = sandbox.dir.path().join(".local/state/baton");
    fs::create_dir_all(&state).unwrap();
    symlink("nowhere", state.join("tokens.json")).unwrap();
    let ran = within(&sandbox, &up).expect(1);
    assert!(ran.one_line().contains("tokens.json is a symbolic link that leads nowhere"), "{}", ran.err);
}

#[test]
fn a_fleet_that_is_not_there_yet_is_said_when_its_gateway_is_closed_or_opened() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["token", "open"]).expect(5);
    assert!(said.one_line().contains("no store at"), "{}", said.err);
    let said = sandbox.run(&["token", "add", "ci"]).expect(0).err;
    assert!(said.contains("a new store was made: ") && said.contains("asks for a token within a second"), "{said}");
    sandbox.run(&["push", "q", "1"]).expect(0);
    let absent = "there is no fleet batn in ";
    let hint = " yet (there are: baton); did you mean --fleet baton?";
    let said = sandbox.run(&["token", "open", "--fleet", "batn"]).expect(1);
    assert!(said.one_line().contains(absent) && said.one_line().contains(hint), "{}", said.err);
    let ran = sandbox.run(&["token", "add", "ci", "--fleet", "batn"]).expect(0);
    assert!(ran.err.contains(absent) && ran.err.contains(hint) && ran.out.starts_with("baton_"), "{}", ran.err);
    sandbox.run(&["token", "revoke", "ci", "--fleet", "batn"]).expect(0);
    // It has an entry, which may be of a store that lost its data.
    let said = sandbox.run(&["token", "open", "--fleet", "batn"]).expect(0).err;
    assert!(said.contains(absent), "{said}");
    let said = sandbox.run(&["token", "add", "more"]).expect(0).err;
    assert!(!said.contains("there is no fleet"), "{said}");
}

#[test]
fn a_process_that_has_stopped_with_the_lock_does_not_hold_up_others_without_end() {
    let sandbox = Sandbox::new();
    sandbox.write("tokens.json.lock", "");
    let lock = File::open(sandbox.dir.path().join("tokens.json.lock")).unwrap();
    lock.lock().unwrap();
    let ran = within(&sandbox, &ADD).expect(1);
    assert!(ran.one_line().contains("another process has locked tokens.json.lock"), "{}", ran.err);
    drop(lock);
    within(&sandbox, &ADD).expect(0);
}

#[test]
fn a_token_that_could_not_be_printed_is_not_made() {
    let sandbox = Sandbox::new();
    let closed = |command: &str| {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec '{}' {command}", env!("CARGO_BIN_EXE_baton")));
        shell.current_dir(sandbox.dir.path()).env("HOME", sandbox.dir.path());
        Ran::of(shell.output().unwrap())
    };
    let ran = closed("token add ci --tokens tokens.json >&-").expect(1);
    assert!(ran.one_line().contains("no token was made"), "{}", ran.err);
    for json in [&[][..], &["--json"]] {
        let add = [&ADD[..], json].concat();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::of(sandbox.command(&add).stdout(full).output().unwrap()).expect(1);
        assert!(ran.one_line().contains("No space left") && ran.err.contains("no token was made"), "{}", ran.err);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = Ran::of(sandbox.command(&add).stdout(writer).output().unwrap()).expect(1);
        assert!(ran.one_line().contains("no token was made"), "{}", ran.err);
    }
    assert!(sandbox.run(&LIST).expect(2).one_line().contains("there is no file tokens.json"));
    assert!(sandbox.run(&ADD).expect(0).out.starts_with("baton_"));
    // What is done is said to be done.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let revoke = ["token", "revoke", "ci", "--tokens", "tokens.json"];
    let ran = Ran::of(sandbox.command(&revoke).stdout(full).output().unwrap()).expect(1);
    assert!(ran.one_line().contains("token ci is revoked"), "{}", ran.err);
    assert!(sandbox.run(&LIST).expect(0).out.contains("no token is valid"));
}

#[test]
fn messages_whose_ids_could_not_be_printed_are_said_to_be_stored() {
    let sandbox = Sandbox::new();
    for (json, bodies, told) in [
        (None, &["1"][..], "1 message is stored (id 1)"),
        (Some("--json"), &["1", "2"], "2 messages are stored (ids 2 to 3)"),
    ] {
        let push = [&["push", "q"][..], bodies, json.as_slice()].concat();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::of(sandbox.command(&push).stdout(full).output().unwrap()).expect(1);
        let line = ran.err.lines().last().unwrap();
        assert!(
            line.contains("No space left") && line.contains(told) && line.ends_with("; do not push again"),
            "{line}"
        );
    }
    assert_eq!(sandbox.pushed(), 3);
}

/// The calls that make a change survive a power failure, in their order, as the system saw them.
#[test]
fn a_change_is_on_disk_before_it_takes_its_place_and_its_place_before_it_is_told() {
    let sandbox = Sandbox::new();
    let traced = |arguments: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-e", "trace=write,fsync,rename,renameat,renameat2", "-o", "trace"]);
        command.arg(env!("CARGO_BIN_EXE_baton")).args(arguments).current_dir(sandbox.dir.path());
        let ran = command.env("HOME", sandbox.dir.path()).stdout(Stdio::piped()).output().ok()?;
        ran.status.success().then(|| fs::read_to_string(sandbox.dir.path().join("trace")).unwrap())
    };
    let folder = sandbox.dir.path().canonicalize().unwrap();
    let in_order = |trace: &str, wanted: &[&str]| {
        let mut lines = trace.lines();
        for call in wanted {
            assert!(lines.any(|line| line.contains(call)), "no {call} in its place: {trace}");
        }
    };
    let (made, synced) = (format!("{}/state>)", folder.display()), "tokens.json.new>)");
    let Some(trace) = traced(&["token", "add", "ci", "--tokens", "state/tokens.json"]) else {
        println!("there is no strace here, or it may not be used");
        return;
    };
    let of_parent = format!("{}>)", folder.display());
    // The folder was made too.
    in_order(&trace, &[&of_parent, "tokens.json.new>, ", synced, "write(1<", "rename", &made]);
    let trace = traced(&["token", "revoke", "ci", "--tokens", "state/tokens.json"]).unwrap();
    in_order(&trace, &["tokens.json.new>, ", synced, "rename", &made, "write(1<"]);
}
