//! A process for each message.

use std::{io, process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{Ears, not_started, template};
use crate::{
    Context, Done, Failure, Handler, Message,
    pool::{Limits, PoolError, Program},
    process::{Child, LAST_WORDS, LastLines, ending, read_all},
};

/// The most that a process may print.
const MAX_OUTPUT: usize = 16 << 20;
/// The exit code that asks for another attempt later: `EX_TEMPFAIL`.
const TRY_AGAIN: i32 = 75;

/// Starts a process for each message.
///
/// It finds the body on its standard input, a JSON string as its text, and `BATON_KEY`, `BATON_QUEUE`, `BATON_ID` and
/// `BATON_ATTEMPT` in its environment; `{}` in its arguments is the body where that is a string or a number. What it
/// prints is the result: as JSON if it is, else as a string. Exit code 0 is done; 75 is tried again after the backoff, up
/// to ten times even if the queue has fewer retries; any other, and a signal, fails the message with the last lines of
/// standard error. What a process leaves behind in its group is killed with its end.
#[derive(Debug, Clone)]
pub struct ExecOnce {
    program: Arc<Program>,
    limits: Arc<Limits>,
    ears: Ears,
}

impl ExecOnce {
    /// Processes that run this program. Of the limits, those of time, memory and processor count; how many there are at
    /// once is the concurrency of the queue.
    #[must_use]
    pub fn new(program: Program, limits: Limits) -> Self {
        Self { program: Arc::new(program), limits: Arc::new(limits), ears: Ears::default() }
    }

    /// With someone who hears each line that a process prints on its standard error, at most 400 bytes of it.
    #[must_use]
    pub fn on_errors(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.ears.errors = Some(Arc::new(hear));
        self
    }

    /// With someone who gets all that a process printed before its message counts as done: perhaps again if the message
    /// is run again, but never not at all.
    #[must_use]
    pub fn on_output(mut self, print: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.ears.output = Some(Arc::new(print));
        self
    }
}

impl Handler for ExecOnce {
    fn handle(&self, message: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let Self { program, limits, ears } = self.clone();
        async move {
            let output = run(&program, &limits, &ears, &message).await?;
            ears.print(&output)?;
            result(&output)
        }
    }
}

/// Runs the process to its end; what it printed.
async fn run(program: &Program, limits: &Limits, ears: &Ears, message: &Message) -> Result<Vec<u8>, Failure> {
    let program = template::fill(program, &message.body)?;
    let failed = |error: io::Error| not_started(&program.to_string(), &error);
    let mut command = program.command();
    command.env("BATON_KEY", message.key()).env("BATON_QUEUE", message.queue.as_str());
    command.env("BATON_ID", message.id.to_string()).env("BATON_ATTEMPT", (message.attempts + 1).to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Child::start_guarded(&mut command).map_err(failed)?;
    child.step_back(limits.nice);
    let (Some(mut input), Some(output), Some(errors)) = (child.input(), child.output(), child.errors()) else {
        return Err(failed(io::Error::other("it has no pipes")));
    };
    let text = if message.body.trim_ascii().starts_with(b"\"") { template::text(&message.body) } else { None };
    let body = text.as_ref().map_or(&*message.body, String::as_bytes);
    let (mut printed, mut complaints) = (Vec::new(), LastLines::default());
    let hear = |line: &str| ears.errors.iter().for_each(|hear| hear(line));
    let status = {
        let pipes = async {
            let given = async {
                // A program that does not care for its input may end, or close it, before it has read that.
                input.write_all(body).await.ok();
                drop(input);
                Ok(())
            };
            let printed = async {
                let read = output.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut printed).await;
                if read.is_ok_and(|read| read > MAX_OUTPUT) { Err(()) } else { Ok(()) }
            };
            let complained = async {
                let add = |read: &[u8]| {
                    if read.is_empty() { complaints.end_line(&hear) } else { complaints.add(read, &hear) }
                };
                read_all(errors, add).await;
                Ok(())
            };
            tokio::try_join!(given, printed, complained).map(drop)
        };
        let exceeded = limits.exceeded(child.pid());
        tokio::pin!(pipes, exceeded);
        let mut are_open = true;
        let status = loop {
            tokio::select! {
                biased;
                heard = &mut pipes, if are_open => {
                    are_open = false;
                    if heard.is_err() {
                        child.kill().await;
                        return Err(Failure::new(format_args!("the process printed over {MAX_OUTPUT} bytes: killed")));
                    }
                }
                status = child.wait() => break status?,
                error = &mut exceeded => {
                    if matches!(error, PoolError::Deadline(_)) { child.stop(limits.grace).await } else { child.kill().await }
                    return Err(Failure::new(error));
                }
            }
        };
        if are_open {
            // A process that has left the group may hold a pipe open.
            timeout(LAST_WORDS, &mut pipes).await.ok();
        }
        status
    };
    if status.success() {
        return Ok(printed);
    }
    let text = match complaints.told() {
        said if said.is_empty() => ending(status),
        said => format!("{}: {said}", ending(status)),
    };
    Err(if status.code() == Some(TRY_AGAIN) { Failure::temporary(text) } else { Failure::new(text) })
}

/// What a process printed, without the last end of line: JSON if it is, else text; nothing if it is empty.
fn result(printed: &[u8]) -> Result<Done, Failure> {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    if printed.is_empty() {
        return Ok(Done::default());
    }
    Ok(match serde_json::from_slice::<&serde_json::value::RawValue>(printed) {
        Ok(json) => Done::with(json)?,
        Err(_) => Done::with(&*String::from_utf8_lossy(printed))?,
    })
}
