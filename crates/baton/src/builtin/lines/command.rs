//! A shell command whose output is a source of lines. It never outlives its stream.

use std::{io, process::Stdio};

use futures_util::FutureExt as _;
use tokio::{io::AsyncReadExt as _, process::ChildStdout};

use crate::{
    SourceError,
    process::{Child, Tail, ending},
};

/// A running command.
#[derive(Debug)]
pub(super) struct Command {
    output: ChildStdout,
    child: Child,
    complaints: Tail,
    has_ended: bool,
}

impl Command {
    /// Starts it.
    pub(super) fn start(line: &str) -> Result<Self, SourceError> {
        let failed = |cause: &dyn std::fmt::Display| SourceError::new(format_args!("cannot run the command: {cause}"));
        let mut command = tokio::process::Command::new("sh");
        command.arg("-c").arg(line).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start_guarded(&mut command).map_err(|error| failed(&error))?;
        let (Some(output), Some(errors)) = (child.output(), child.errors()) else {
            return Err(failed(&"it has no output"));
        };
        Ok(Self { output, child, complaints: Tail::of(errors, None), has_ended: false })
    }

    /// Reads more of its output; 0 is its end. The end comes when the command has ended and its output is read. Processes
    /// that it left behind may hold the pipe open for ever, so the pipe's own end is not waited for.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        if !self.has_ended {
            tokio::select! {
                biased;
                read = self.output.read_buf(into) => return read,
                ended = self.child.wait() => self.has_ended = ended.is_ok(),
            }
        }
        self.output.read_buf(into).now_or_never().unwrap_or(Ok(0))
    }

    /// Waits for its end. Any exit code but 0 is a failure.
    pub(super) async fn finish(&mut self) -> Result<(), SourceError> {
        let status = self.child.wait().await?;
        if status.success() {
            return Ok(());
        }
        let complaint = self.complaints.last_line().await;
        let said = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
        Err(SourceError::for_good(format_args!("the command {}{said}", ending(status))))
    }
}
