//! A process that never outlives whoever holds it, nor what it started itself.

use std::{io, os::unix::process::ExitStatusExt as _, process::ExitStatus, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, setpriority_process};
use tokio::{
    net::unix::pipe::Receiver,
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
};

use super::{
    groups::Group,
    guardian::{self, Watched},
};
use crate::drivers;

/// A child process with a group of its own, which is killed when this is dropped, and when the child has ended.
#[derive(Debug)]
pub struct Child {
    child: tokio::process::Child,
    pid: u32,
    /// Tells its end while its process id is still its own: the system's handle of it, which can be waited for as a pipe
    /// can, though not read.
    handle: Option<Receiver>,
    /// Its group is killed also if this process is.
    watched: Option<Watched>,
    /// Its group stops and goes on with this process.
    group: Option<Group>,
}

impl Child {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, if it cannot be started; another if the runtime has no I/O driver.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        drivers::io_here().map_err(io::Error::other)?;
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let pid = child.id().unwrap_or(0);
        let handle = raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        let handle = handle.and_then(|handle| Receiver::from_file_unchecked(handle.into()).ok());
        Ok(Self { child, pid, handle, watched: None, group: Some(Group::new(pid)) })
    }

    /// Starts it; it ends with this process, also if that is killed, and so does what it starts itself.
    ///
    /// # Errors
    /// The system's, if it cannot be started, or if no guardian can be.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn start_guarded(command: &mut Command) -> io::Result<Self> {
        guardian::mark(command)?;
        let mut child = Self::start(command)?;
        child.watched = Some(guardian::watch(child.pid));
        Ok(child)
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

    /// Gives it less of the processor than others; with this number of steps.
    pub(crate) fn step_back(&self, steps: i32) {
        if let Some(pid) = self.id().and_then(raw) {
            // One that has ended needs none.
            setpriority_process(Some(pid), steps).ok();
        }
    }

    /// Waits for its end, and kills what is left of its group then.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Cancel safety
    /// It can be waited for again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(handle) = self.handle.as_ref().filter(|_| self.child.id().is_some()) {
            handle.readable().await?;
            self.kill_group();
            // Its number may be another's as soon as it is waited for.
            (self.watched, self.group) = (None, None);
        }
        // Where the handle tells its end, it need not be waited for.
        let ended = match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => self.child.wait().await,
        };
        // Its number may be another's from now on.
        (self.watched, self.group) = (None, None);
        ended
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The system's.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        if ended.is_some() {
            (self.watched, self.group) = (None, None);
        }
        Ok(ended)
    }

    /// Asks its group to end, and kills it after `grace`; waits for its end.
    ///
    /// # Cancel safety
    /// It was asked, and may not have been killed.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        self.signal_group(Signal::TERM);
        if tokio::time::timeout(grace, self.wait()).await.is_err() {
            self.kill().await;
        }
    }

    /// Kills its group and waits for its end.
    ///
    /// # Cancel safety
    /// It is killed all the same.
    pub async fn kill(&mut self) {
        self.kill_group();
        (self.watched, self.group) = (None, None);
        // One that has ended is no failure.
        self.child.wait().await.ok();
    }

    fn kill_group(&self) {
        self.signal_group(Signal::KILL);
    }

    fn signal_group(&self, signal: Signal) {
        // Until it is waited for, its process id is its own; afterwards it may be another's, and is not told here.
        if let Some(group) = self.child.id().and_then(raw) {
            // It fails only if nobody is left.
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill_group();
    }
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// How a process ended, as part of a sentence.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".to_owned(),
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}
