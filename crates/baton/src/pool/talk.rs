//! The exchange between a child and its caller: a task goes in, events come out.

use std::io;

use serde_json::value::RawValue;
use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

use super::{
    Event, Limits, PoolError, Task,
    answer_times::AnswerTimes,
    output::Output,
    protocol::{self, Said, shown},
};

/// The bytes that an empty pipe takes without a reader.
const PIPE: usize = 4 << 10;

/// The pipes to a child.
#[derive(Debug)]
pub(super) struct Talk {
    input: ChildStdin,
    output: Output,
    /// Whether it answered before it had read its whole task.
    is_behind: bool,
    /// The last task, as it was given.
    given: Vec<u8>,
    patience: AnswerTimes,
    naming: Naming,
}

/// Whether the child may write its result into an unknown field. Its first answer without a result is checked for that.
#[derive(Debug)]
enum Naming {
    Unknown,
    /// The field.
    Odd(String),
    Looked,
}

/// The receiver of a child's events before its answer.
pub(super) trait Hear: Send {
    fn hear(&mut self, event: Event<'_>) -> impl Future<Output = Result<(), PoolError>> + Send;
}

impl<F, H> Hear for F
where
    F: FnMut(Event<'_>) -> H + Send,
    H: Future<Output = Result<(), PoolError>> + Send,
{
    fn hear(&mut self, event: Event<'_>) -> impl Future<Output = Result<(), PoolError>> + Send {
        self(event)
    }
}

/// The outcome of a task.
pub(super) type Answer = Result<Option<Box<RawValue>>, PoolError>;

impl Talk {
    pub(super) fn new(input: ChildStdin, output: ChildStdout) -> io::Result<Self> {
        let output = Output::new(output)?;
        let (given, patience, naming) = (Vec::new(), AnswerTimes::default(), Naming::Unknown);
        Ok(Self { input, output, is_behind: false, given, patience, naming })
    }

    /// The field that it wrote its result into instead of `data`; returned once.
    pub(super) fn misnamed(&mut self) -> Option<String> {
        match &mut self.naming {
            Naming::Odd(field) => {
                let field = std::mem::take(field);
                self.naming = Naming::Looked;
                Some(field)
            }
            _ => None,
        }
    }

    /// Gives it a task and reads its events until it has answered.
    pub(super) async fn have(&mut self, task: &Task<'_>, limits: &Limits, hear: &mut impl Hear) -> Answer {
        let Self { input, output, given, is_behind, patience, naming } = self;
        given.clear();
        task.write(given);
        let is_short = given.len() <= PIPE;
        let written = async {
            let closed = |_| PoolError::ClosedInput { complaints: String::new() };
            input.write_all(given).await.map_err(closed)
        };
        if is_short {
            let wait = patience.begin();
            written.await?;
            output.wait_in_thread(wait.in_thread());
            let answer = hear_out(output, naming, task.id, limits, hear).await;
            wait.ended();
            return answer;
        }
        let heard = hear_out(output, naming, task.id, limits, hear);
        // A child may answer a long task in many lines while it still reads, so both directions run at the same time.
        tokio::pin!(heard);
        tokio::select! {
            biased;
            answer = &mut heard => {
                *is_behind = true;
                return answer;
            }
            written = written => written?,
        }
        heard.await
    }

    /// Whether it has read its whole task and has printed nothing without a task.
    pub(super) fn is_still(&self) -> bool {
        !self.is_behind && self.output.is_still()
    }

    /// Whether a child that has ended without an answer had read nothing of its task: the pipe holds all of it, or nothing
    /// because it was closed before.
    pub(super) fn is_untouched(&self, error: &PoolError) -> bool {
        let unread = rustix::io::ioctl_fionread(&self.input).unwrap_or(0);
        self.given.len() <= PIPE
            && match error {
                PoolError::ClosedInput { .. } => unread == 0,
                PoolError::ClosedOutput { .. } => unread == self.given.len() as u64,
                _ => false,
            }
    }
}

/// Reads the events of a child until it has answered.
async fn hear_out(
    output: &mut Output, naming: &mut Naming, task: u64, limits: &Limits, hear: &mut impl Hear,
) -> Answer {
    loop {
        let reading = output.line(limits.line);
        let said = match limits.output_timeout {
            Some(limit) => timeout(limit, reading).await.map_err(|_| PoolError::OutputTimeout(limit))?,
            None => reading.await,
        }?;
        let Some(line) = said.strip_suffix(b"\n") else {
            return Err(match said.len() {
                0 => PoolError::ClosedOutput { complaints: String::new() },
                len if len > limits.line => PoolError::LongLine { limit: limits.line },
                _ => PoolError::HalfLine { line: shown(said) },
            });
        };
        if line.is_empty() {
            continue;
        }
        match protocol::read(line, task)? {
            Said::Event(event) => hear.hear(event).await?,
            Said::End { data: None } => {
                if matches!(naming, Naming::Unknown) {
                    *naming = protocol::odd_field(line).map_or(Naming::Looked, Naming::Odd);
                }
                return Ok(None);
            }
            Said::End { data } => return Ok(data.map(RawValue::to_owned)),
            Said::Error { message, fatal } => return Err(PoolError::Failed { message, fatal }),
        }
    }
}
