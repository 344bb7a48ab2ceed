//! Child processes of the measurement: this program again, on a leash.
//!
//! A child ends when it is asked to, when this process is gone, or killed when it is dropped.

use std::{process::Stdio, time::Duration};

use baton::{
    process::{Child, Leash, Word},
    settings::CONFIG,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStdout, Command},
};

use super::target::Target;
use crate::failure::Failure;

/// How long a child may take to end.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A child process on the store under test.
pub(super) struct Subprocess {
    child: Child,
    leash: Leash,
}

impl Subprocess {
    /// Starts this program with these arguments.
    pub(super) fn start(target: &Target, arguments: &[&str], stdout: Stdio) -> Result<Self, Failure> {
        let cannot = |error| Failure::new(format!("cannot start another process: {error}"), "free some processes");
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.env_remove(CONFIG).envs(target.settings.variables());
        command.args(arguments).stdin(Stdio::piped()).stdout(stdout);
        let mut child = Child::start(&mut command).map_err(cannot)?;
        let leash = Leash::of(&mut child);
        Ok(Self { child, leash })
    }

    /// Starts a worker of `queue` whose handler does nothing, and waits until it has joined.
    pub(super) async fn worker(target: &Target, queue: &str) -> Result<Self, Failure> {
        let arguments = ["node", "--role", "worker", "--handler", "noop", "--queue", queue, "--leashed", "--quiet"];
        let mut worker = Self::start(target, &arguments, Stdio::null())?;
        target.joined(&mut worker).await?;
        Ok(worker)
    }

    pub(super) const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// What it prints, a line at a time; once.
    pub(super) fn lines(&mut self) -> Option<Lines<BufReader<ChildStdout>>> {
        self.child.output().map(|stdout| BufReader::new(stdout).lines())
    }

    /// Fails if it has ended.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.child.ended() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(lost(&status.to_string())),
            Err(error) => Err(lost(&error.to_string())),
        }
    }

    /// Asks it to end; it may still have something to print.
    pub(super) async fn ask_to_end(&mut self) {
        self.leash.say(Word::Drain).await;
    }

    /// Asks it to end and waits for that.
    pub(super) async fn stop(mut self) -> Result<(), Failure> {
        self.ask_to_end().await;
        match tokio::time::timeout(LAST_WORDS, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(lost(&status.to_string())),
            Ok(Err(error)) => Err(lost(&error.to_string())),
            Err(_) => Err(lost("it does not end")),
        }
    }

    /// Kills it with -9.
    pub(super) async fn kill(mut self) {
        self.child.kill().await;
    }
}

fn lost(why: &str) -> Failure {
    Failure::new(format!("a process of the measurement is lost: {why}"), "run the command again")
}
