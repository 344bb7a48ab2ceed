//! A folder with a store of its own, the command run on it, and a node prepared through the library.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each scenario uses a part")]

use std::{
    ffi::OsStr,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use baton::{
    Name,
    store::{
        Kind, Store,
        message::{Outcome, Run},
        session::{Session, SessionOptions},
    },
};
use tempfile::TempDir;

pub(crate) struct Sandbox {
    pub(crate) dir: TempDir,
    /// The store in force, if it is not the file.
    url: Option<String>,
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts the code and gives what was printed.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out: {} err: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.out.lines().count(), 1, "one object: {}", self.out);
        serde_json::from_str(&self.out).unwrap()
    }

    /// Asserts that stderr holds one line as all diagnostics look.
    #[track_caller]
    pub(crate) fn one_line(&self) -> &str {
        let line = self.err.strip_suffix('\n').unwrap_or_default();
        assert!(line.starts_with("baton: ") && line.contains("; ") && !line.contains('\n'), "stderr: {:?}", self.err);
        line
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), url: None }
    }

    /// One whose store is a server.
    pub(crate) fn on(server: &baton_testkit::server::RedisServer) -> Self {
        Self { url: Some(server.url()), ..Self::new() }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone().unwrap_or_else(|| format!("sqlite:{}", self.path().display()))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("baton.db")
    }

    /// The command with nothing of the surroundings in force.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.args(arguments).env_clear().env("HOME", self.dir.path());
        command.env("BATON_STORE", self.url()).current_dir(self.dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The command may end before it has read everything.
        let writer = std::thread::spawn(move || stdin.write_all(&input).ok());
        let ran = Ran::of(child.wait_with_output().unwrap());
        writer.join().unwrap();
        ran
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    /// Starts a command that goes on; what it says of itself is in the file `log`.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_by(&mut self.command(arguments))
    }

    /// The same of a command that was made before.
    pub(crate) fn start_by(&self, command: &mut Command) -> Running {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        // A group of its own, as a shell gives it.
        Running(command.process_group(0).stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }

    /// What `status` says; nothing while there is no store.
    pub(crate) fn status(&self) -> serde_json::Value {
        let ran = self.run(&["status", "--json", "--wait", "0"]);
        if ran.code == Some(0) { ran.json() } else { serde_json::Value::Null }
    }

    /// The process ids of live nodes, of one role or of all.
    pub(crate) fn nodes(&self, role: Option<&str>) -> Vec<u32> {
        let status = self.status();
        let nodes = status["nodes"].as_array().into_iter().flatten();
        let nodes = nodes.filter(|node| role.is_none_or(|role| node["role"] == role));
        nodes.map(|node| u32::try_from(node["pid"].as_u64().unwrap()).unwrap()).collect()
    }

    /// The messages of a queue in one of its states.
    pub(crate) fn count(&self, queue: &str, state: &str) -> u64 {
        let status = self.status();
        let queue = status["queues"].as_array().into_iter().flatten().find(|it| it["name"] == queue);
        queue.and_then(|queue| queue[state].as_u64()).unwrap_or(0)
    }

    /// The messages ever pushed, of balanced books; none while there is no fleet.
    pub(crate) fn pushed(&self) -> u64 {
        let ran = self.run(&["audit", "--json", "--deep"]);
        if ran.code == Some(1) && ran.json()["exists"] == false {
            return 0;
        }
        ran.expect(0).json()["pushed"].as_u64().unwrap()
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        baton::store::open(&self.url().parse().unwrap(), Name::new("baton").unwrap(), true).unwrap()
    }

    /// A node's session on `queue`.
    pub(crate) async fn node(&self, queue: &str) -> Session {
        let options =
            SessionOptions { kind: Kind::Node, queues: vec![Name::new(queue).unwrap()], ..SessionOptions::client() };
        Session::join(self.store(), options).await.unwrap()
    }

    /// Pushes these bodies and lets each fail with the error beside it.
    pub(crate) fn failed(&self, queue: &str, failures: &[(&str, &str)]) {
        let bodies: Vec<&str> = failures.iter().map(|(body, _)| *body).collect();
        self.run(&[&["push", queue][..], &bodies].concat()).expect(0);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let node = self.node(queue).await;
            for (_, error) in failures {
                let claimed = node.claim(Name::new(queue).unwrap(), 1, 1 << 20).await.unwrap();
                let Some(held) = claimed.held else { panic!("nothing to claim") };
                let (claim_no, queue, spans) = held.into_parts();
                let range = spans[0].0.range;
                let run = Run { claim_no, queue, range, outcome: Outcome::Failed { error: (*error).to_owned() } };
                assert!(node.settle(vec![run]).await.unwrap().refused.is_empty());
            }
            node.leave().await.unwrap();
        });
    }
}

/// Waits for a condition; a minute is for ever here.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A command that goes on, killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills it with -9.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap().success());
    }

    /// As a terminal does it.
    pub(crate) fn signal_group(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, "--", &format!("-{}", self.pid())]).status().unwrap().success());
    }

    /// Waits until it ends by itself; its exit code.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut ended = None;
        until("the command ends", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        ended.and_then(|ended| ended.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Whether no such process runs (any more); one that nobody has waited for yet has ended all the same.
pub(crate) fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// The processes below one, by their ids.
pub(crate) fn below(pid: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: std::collections::BTreeMap<u32, u32> = all.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let (mut found, mut at) = (vec![pid], 0);
    while let Some(above) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, parent)| **parent == above).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}
