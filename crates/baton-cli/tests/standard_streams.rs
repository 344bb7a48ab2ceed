//! What a run reads from its standard input or from a command, and what it prints: whoever stands at the other end.

mod sandbox;

use std::{
    io::Write as _,
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use sandbox::{Ran, Sandbox, until};

fn with_path(command: &mut Command) -> &mut Command {
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default())
}

#[test]
fn two_runs_at_once_each_do_the_lines_of_their_own_standard_input() {
    let sandbox = Sandbox::new();
    let up = ["up", "--queue", "q", "--share-queue", "--lines", "-", "--handler", "noop", "--until-done"];
    let runs = ["1\n".repeat(100), "2\n".repeat(150)].map(|lines| {
        let mut run = with_path(&mut sandbox.command(&up)).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = run.stdin.take().unwrap();
        (run, std::thread::spawn(move || input.write_all(lines.as_bytes())))
    });
    for (run, writer) in runs {
        Ran::of(run.wait_with_output().unwrap()).expect(0);
        writer.join().unwrap().unwrap();
    }
    assert_eq!(sandbox.count("q", "done"), 250);
    // Nothing is left of sources that nobody can go on with.
    assert_eq!(sandbox.status()["sources"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_a_command_leaves_behind_does_not_hold_up_the_end_of_its_lines() {
    let sandbox = Sandbox::new();
    let lines_from = "seq 1 5; sleep 1000 & setsid sleep 1000 &";
    let up = ["up", "--queue", "q", "--lines-from", lines_from, "--handler", "noop", "--until-done"];
    Ran::of(with_path(&mut sandbox.command(&up)).output().unwrap()).expect(0);
    assert_eq!(sandbox.count("q", "done"), 5);
}

#[test]
fn a_run_whose_output_nobody_takes_can_be_stopped() {
    let sandbox = Sandbox::new();
    sandbox.write("lines", "1\n".repeat(20));
    // More than a pipe holds; its other end is open and is not read.
    let flood = "sh -c 'yes a | head -c 200000'";
    let up = ["up", "--queue", "q", "--lines", "lines", "--exec-once", flood, "--until-done", "--grace", "1s", "-q"];
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = sandbox.command(&up);
    let mut run = with_path(&mut command).stdout(OwnedFd::from(writer)).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    until("it is at work", || sandbox.count("q", "in_flight") > 0);
    let term = format!("{}", run.id());
    Command::new("kill").args(["-TERM", &term]).status().unwrap();
    until("it has ended", || run.try_wait().unwrap().is_some());
    drop(reader);
    sandbox.run(&["audit", "--deep"]).expect(0);
}
