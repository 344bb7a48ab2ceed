//! Children of a program that is not its own guardian: a shell ends them if the program is killed.

use std::{
    future::ready,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use baton::pool::{Limits, Pool, Program, Task};

/// Where the children of the program write their process ids.
const PIDS: &str = "PIDS_OF_CHILDREN";

/// The program, if this is started by the test below: runs a child until it is killed.
#[tokio::test]
async fn a_program_with_a_child() {
    let Some(pids) = std::env::var_os(PIDS) else { return };
    let script =
        "trap '' TERM HUP; /usr/bin/setsid /bin/sleep 1000 & echo $! >>\"$1\"; echo $$ >>\"$1\"; /bin/sleep 1000";
    let program = Program::new("/bin/sh", ["-c".into(), script.into(), "sh".into(), pids]);
    program.check().unwrap();
    let pool = Pool::new(program, Limits::default());
    let task = Task { id: 1, key: "q/1@1", queue: "q", attempt: 1, crashes: 0, call: None, body: b"1" };
    panic!("{:?}", pool.run(&task, |_| ready(Ok(()))).await);
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn children_end_with_a_program_that_is_killed_wherever_path_leads() {
    for path in ["/usr/bin:/bin", "/nowhere"] {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "a_program_with_a_child"]).env(PIDS, &pids).env("PATH", path);
        let mut program = program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = |pids: &Path| std::fs::read_to_string(pids).unwrap_or_default();
        until("its children run", || begun(&pids).lines().count() == 2);
        program.kill().unwrap();
        program.wait().unwrap();
        until("they are gone", || begun(&pids).lines().all(is_gone));
    }
}
