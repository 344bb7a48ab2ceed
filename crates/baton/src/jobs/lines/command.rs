//! A shell command whose output is read; it never outlives its stream.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdout},
    task::JoinHandle,
};

use crate::SourceError;

/// Bytes kept of a line of the error output.
const COMPLAINT: u64 = 400;
/// How long the error output is awaited behind the end of the command: a process it left behind may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running command.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) output: ChildStdout,
    child: Child,
    complaints: JoinHandle<()>,
    /// The last line of its error output that was not blank.
    complaint: Arc<Mutex<String>>,
}

impl Command {
    /// Starts it.
    pub(super) fn start(line: &str) -> Result<Self, SourceError> {
        let failed = |cause: &dyn std::fmt::Display| SourceError::new(format_args!("cannot run the command: {cause}"));
        let mut child = tokio::process::Command::new("sh")
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(failed(&"it has no output"));
        };
        let complaint = Arc::default();
        let complaints = tokio::spawn(listen(errors, Arc::clone(&complaint)));
        Ok(Self { output, child, complaints, complaint })
    }

    /// Waits for its end, which is a failure unless its exit code is 0.
    pub(super) async fn finish(&mut self) -> Result<(), SourceError> {
        let status = self.child.wait().await?;
        if status.success() {
            return Ok(());
        }
        // Whether all was heard or not: what was heard last is told.
        tokio::time::timeout(LAST_WORDS, &mut self.complaints).await.ok();
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
        Err(SourceError::for_good(format_args!("the command {}{said}", ending(status))))
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.complaints.abort();
        // Until the command is waited for, its process id is its own; afterwards it may be another's.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // It fails only if nobody is left.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "failed".to_owned(),
    }
}

/// Reads the error output to its end, so that the command is never held up by it.
async fn listen(errors: ChildStderr, complaint: Arc<Mutex<String>>) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    // A longer line is read in several parts; the first one tells the cause.
    let mut begins = true;
    while let Ok(1..) = (&mut errors).take(COMPLAINT).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        if begins && !text.trim().is_empty() {
            text.trim().clone_into(&mut complaint.lock().unwrap_or_else(PoisonError::into_inner));
        }
        begins = line.ends_with(b"\n");
        line.clear();
    }
}
