//! A process that never outlives whoever holds it.

use std::{io, process::ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// A child process with a group of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    child: tokio::process::Child,
    pid: u32,
}

impl Child {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, if it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let pid = child.id().unwrap_or(0);
        Ok(Self { child, pid })
    }

    /// Its process id, which may be another's once it has been waited for.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Its process id as long as that is its own: until it has been waited for. To signal it by.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Its standard input, if it is a pipe; once.
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its standard output, if it is a pipe; once.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, if it is a pipe; once.
    pub fn errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Cancel safety
    /// It can be waited for again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The system's.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Kills its group and waits for its end.
    ///
    /// # Cancel safety
    /// It is killed all the same.
    pub async fn kill(&mut self) {
        self.kill_group();
        // One that has ended is no failure.
        self.child.wait().await.ok();
    }

    fn kill_group(&self) {
        // Until it is waited for, its process id is its own; afterwards it may be another's, and is not told here.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // It fails only if nobody is left.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_group();
    }
}
