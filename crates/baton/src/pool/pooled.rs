//! One child of a pool: it is given a task, and heard until it has answered.

use std::{io, process::Stdio, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
    time::{Instant, timeout},
};

use super::{
    Limits, PoolError, Program, Task,
    protocol::{self, Said, shown},
};
use crate::process::{Child, LAST_WORDS, Listener, Tail};

/// What a pipe takes at once, if its reader has read all that came before.
const PIPE: usize = 4 << 10;

/// A child, and the pipes to it.
#[derive(Debug)]
pub(super) struct Pooled {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    complaints: Tail,
    /// Tasks it has answered.
    tasks: u64,
    /// Whether it answered before it had read all of a task.
    is_behind: bool,
    /// Since when it waits for a task.
    since: Instant,
    /// The memory of lines to it and from it.
    given: Vec<u8>,
    said: Vec<u8>,
}

type Answer = Result<Option<Box<RawValue>>, PoolError>;

impl Pooled {
    /// Starts it.
    pub(super) fn start(program: &Program, limits: &Limits, listener: Option<Listener>) -> Result<Self, PoolError> {
        let failed = |error| PoolError::Start { program: program.to_string(), error };
        let mut command = program.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start_guarded(&mut command).map_err(failed)?;
        child.step_back(limits.nice);
        let (Some(input), Some(output), Some(errors)) = (child.input(), child.output(), child.errors()) else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
            complaints: Tail::of(errors, listener),
            tasks: 0,
            is_behind: false,
            since: Instant::now(),
            given: Vec::new(),
            said: Vec::new(),
        })
    }

    /// Gives it a task and hears it until it has answered. After an error other than [`PoolError::Failed`] it is of no
    /// more use.
    pub(super) async fn answer(
        &mut self, task: &Task<'_>, limits: &Limits, hear: &mut (impl FnMut(&str, Option<&RawValue>) + Send),
    ) -> Answer {
        let pid = self.child.pid();
        let talk = self.talk(task, limits, hear);
        let answer = tokio::select! {
            biased;
            answer = talk => answer,
            error = limits.exceeded(pid) => Err(error),
        };
        match answer {
            Ok(_) | Err(PoolError::Failed { .. }) => {
                self.tasks += 1;
                answer
            }
            Err(error) => Err(self.explained(error).await),
        }
    }

    async fn talk(
        &mut self, task: &Task<'_>, limits: &Limits, hear: &mut (impl FnMut(&str, Option<&RawValue>) + Send),
    ) -> Answer {
        let Self { input, output, given, said, .. } = self;
        given.clear();
        task.write(given);
        let is_short = given.len() <= PIPE;
        let written = async {
            let closed = |_| PoolError::ClosedInput { complaints: String::new() };
            input.write_all(given).await.map_err(closed)
        };
        let heard = hear_out(output, said, task.id, limits, hear);
        if is_short {
            written.await?;
            return heard.await;
        }
        // A child may answer a long task in many lines while it still reads, and neither may wait for the other.
        tokio::pin!(heard);
        tokio::select! {
            biased;
            answer = &mut heard => {
                self.is_behind = true;
                return answer;
            }
            written = written => written?,
        }
        heard.await
    }

    /// With how it ended and what it complained of, where that explains the error.
    async fn explained(&mut self, error: PoolError) -> PoolError {
        if !matches!(error, PoolError::ClosedInput { .. } | PoolError::ClosedOutput { .. }) {
            return error;
        }
        // One that has closed a pipe is about to end, as a rule.
        let status = timeout(LAST_WORDS, self.child.wait()).await;
        let complaints = self.complaints.told().await;
        match (status, error) {
            (Ok(Ok(status)), _) => PoolError::Ended { status, complaints },
            (_, PoolError::ClosedInput { .. }) => PoolError::ClosedInput { complaints },
            _ => PoolError::ClosedOutput { complaints },
        }
    }

    /// Whether it runs, has read all it was given, and has said nothing that nobody asked for.
    pub(super) fn is_still(&self) -> bool {
        // The system is asked itself: what came just now is not yet known to the runtime.
        let mut output = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let is_silent = matches!(poll(&mut output, Some(&Timespec::default())), Ok(0));
        !self.is_behind && self.output.buffer().is_empty() && is_silent
    }

    /// Tasks it has answered.
    pub(super) const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// It waits for a task from now on.
    pub(super) fn rests(&mut self) {
        self.since = Instant::now();
    }

    /// How long it has waited for a task.
    pub(super) fn rested(&self) -> Duration {
        self.since.elapsed()
    }

    /// Ends it after an error: one that only took its time is asked first.
    pub(super) async fn end(mut self, error: &PoolError, grace: Duration) {
        match error {
            PoolError::Deadline(_) | PoolError::Silence(_) => self.child.stop(grace).await,
            _ => self.child.kill().await,
        }
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await;
    }

    /// Closes its input, which tells it to end, and kills it if it does not.
    pub(super) async fn retire(self, grace: Duration) {
        let Self { mut child, input, output, complaints, .. } = self;
        drop((input, output));
        if timeout(grace, child.wait()).await.is_err() {
            child.stop(grace).await;
        }
        drop(complaints);
    }
}

/// Hears a child until it has answered.
async fn hear_out(
    output: &mut BufReader<ChildStdout>, said: &mut Vec<u8>, task: u64, limits: &Limits,
    hear: &mut (impl FnMut(&str, Option<&RawValue>) + Send),
) -> Answer {
    loop {
        said.clear();
        // With its end, a line has one byte more.
        let mut bounded = (&mut *output).take(limits.line as u64 + 1);
        let reading = bounded.read_until(b'\n', said);
        let read = match limits.silence {
            Some(silence) => timeout(silence, reading).await.map_err(|_| PoolError::Silence(silence))?,
            None => reading.await,
        };
        read?;
        let Some(line) = said.strip_suffix(b"\n") else {
            return Err(match said.len() {
                0 => PoolError::ClosedOutput { complaints: String::new() },
                len if len > limits.line => PoolError::LongLine { limit: limits.line },
                _ => PoolError::HalfLine { line: shown(said) },
            });
        };
        match protocol::read(line, task)? {
            Said::Event { name, data } => hear(&name, data),
            Said::End { data } => return Ok(data.map(RawValue::to_owned)),
            Said::Error { message, fatal } => return Err(PoolError::Failed { message, fatal }),
        }
    }
}
