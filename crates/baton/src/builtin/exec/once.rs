//! A process for each message.

use std::{
    io::{self, Write as _},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::{io::AsyncWriteExt as _, process::Command, sync::Notify, time::timeout};

use super::{Ears, not_started, template};
use crate::{
    Context, Done, Failure, Handler, Message,
    pool::{Limits, PoolError, Program, Spoken},
    process::{Child, LAST_WORDS, LastLines, Pipe, ending},
};

/// The most that a process may print.
const MAX_OUTPUT: usize = 16 << 20;
/// The bytes that every pipe takes without a reader.
const PIPE: usize = 4 << 10;
/// How long the output stays in its pipes before it is read as it comes: most processes end within that.
const UNREAD: Duration = Duration::from_millis(5);
/// The exit code that asks for another attempt later: `EX_TEMPFAIL`.
const TRY_AGAIN: i32 = 75;

/// Starts a process for each message.
///
/// The process gets the body on its standard input, a JSON string as its text. Its environment has `BATON_MESSAGE_KEY`,
/// `BATON_QUEUE`, `BATON_ID`, `BATON_ATTEMPT` and `BATON_CRASHES`. `{}` in its arguments is the body if that is a string or
/// a number. A body that begins with `-` fails where the program could take it for an option: put the word `--` before
/// `{}`, or see [`ExecOnce::allow_dash`].
///
/// The output is the result: as JSON if it is JSON, otherwise as a string. Exit code 0 is done. 75 is tried again after
/// the backoff, up to ten times even if the queue has fewer retries. Any other code, and a signal, fails the message with the
/// last lines of standard error. Processes that it leaves behind in its group are killed when it ends.
#[derive(Debug, Clone)]
pub struct ExecOnce {
    program: Arc<Program>,
    limits: Arc<Limits>,
    ears: Ears,
    allow_dash: bool,
}

impl ExecOnce {
    /// Processes that run this program. The limits of time, memory and niceness apply; the number of processes at once is
    /// the concurrency of the queue.
    #[must_use]
    pub fn new(program: Program, limits: Limits) -> Self {
        Self {
            program: Arc::new(program.located()),
            limits: Arc::new(limits),
            ears: Ears::default(),
            allow_dash: false,
        }
    }

    /// Lets a body begin with `-` even without the word `--` before its `{}`. The program must not take it for an option.
    #[must_use]
    pub fn allow_dash(mut self) -> Self {
        self.allow_dash = true;
        self
    }

    /// Calls `hear` with each line that a process prints on its standard error, at most 400 bytes of it.
    #[must_use]
    pub fn on_errors(mut self, hear: impl Fn(&Spoken<'_>) + Send + Sync + 'static) -> Self {
        self.ears.errors = Some(Arc::new(hear));
        self
    }

    /// Calls `print` with the whole output of a process before its message counts as done. If the message runs again,
    /// `print` may be called again.
    #[must_use]
    pub fn on_output(mut self, print: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.ears.output = Some(Arc::new(print));
        self
    }
}

impl Handler for ExecOnce {
    fn handle(&self, message: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let Self { program, limits, ears, allow_dash } = self.clone();
        async move {
            let filled = template::fill(&program, &message.body, allow_dash)?;
            // The error names the command as it was written, without the body.
            let failed = |error: io::Error| not_started(&program.to_string(), &error);
            let output = run(&filled, &limits, &ears, &message, failed).await?;
            ears.print(&output)?;
            result(&output)
        }
    }
}

/// Runs the process to its end and returns its output.
async fn run(
    program: &Program, limits: &Limits, ears: &Ears, message: &Message, failed: impl Fn(io::Error) -> Failure + Send,
) -> Result<Vec<u8>, Failure> {
    let mut command = program.command();
    command.env("BATON_MESSAGE_KEY", message.key()).env("BATON_QUEUE", message.queue.as_str());
    command.env("BATON_ID", message.id.to_string()).env("BATON_ATTEMPT", (message.attempts + 1).to_string());
    command.env("BATON_CRASHES", message.crashes.to_string());
    let text = template::string(&message.body);
    let body = text.as_ref().map_or(&*message.body, String::as_bytes);
    let (mut output, mut errors) = attach(&mut command, body).map_err(&failed)?;
    let mut child = Child::start_guarded(&mut command).map_err(&failed)?;
    // This closes this process's own ends of the pipes.
    drop(command);
    child.step_back(limits.nice);
    let input = child.input();
    let (mut printed, mut complaints) = (Vec::new(), LastLines::default());
    let hear = |text: &str, _: Option<u64>| {
        let spoken = Spoken { text, message: Some(message.id), child: None, is_hint: false };
        ears.errors.iter().for_each(|hear| hear(&spoken));
    };
    let ended = Notify::new();
    let status = {
        let pipes = async {
            let given = async {
                if let Some(mut input) = input {
                    // A program that ignores its input may end, or close it, before it has read all of it.
                    input.write_all(body).await.ok();
                }
                Ok(())
            };
            let read = async {
                // Most processes have ended by then, and their whole output is read at once.
                timeout(UNREAD, ended.notified()).await.ok();
                tokio::try_join!(all_of(&mut output, &mut printed), lines_of(&mut errors, &mut complaints, &hear))
            };
            tokio::try_join!(given, read).map(drop)
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
                        return Err(too_much());
                    }
                }
                status = child.wait() => break status?,
                error = &mut exceeded => {
                    if matches!(error, PoolError::Timeout(_)) { child.stop(limits.grace).await } else { child.kill().await }
                    return Err(Failure::new(error));
                }
            }
        };
        ended.notify_one();
        if are_open {
            // A process that has left the group may hold a pipe open.
            let heard = timeout(LAST_WORDS, &mut pipes).await;
            if matches!(heard, Ok(Err(()))) {
                return Err(too_much());
            }
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

/// Gives the process its pipes: two for its output, and one that holds its body or into which it is written.
fn attach(command: &mut Command, body: &[u8]) -> io::Result<(Pipe, Pipe)> {
    let ((output, prints), (errors, complains)) = (io::pipe()?, io::pipe()?);
    command.stdout(prints).stderr(complains);
    if body.len() > PIPE {
        command.stdin(Stdio::piped());
    } else {
        let (reads, mut input) = io::pipe()?;
        input.write_all(body)?;
        command.stdin(reads);
    }
    Ok((Pipe::of(output)?, Pipe::of(errors)?))
}

/// Reads to the end; fails if that is too much.
async fn all_of(pipe: &mut Pipe, printed: &mut Vec<u8>) -> Result<(), ()> {
    // A pipe that cannot be read has ended too.
    while let Ok(1..) = pipe.read(printed, &mut None).await {
        if printed.len() > MAX_OUTPUT {
            return Err(());
        }
    }
    Ok(())
}

/// Reads to the end and keeps the last lines.
async fn lines_of(pipe: &mut Pipe, lines: &mut LastLines, hear: &(dyn Fn(&str, Option<u64>) + Sync)) -> Result<(), ()> {
    let mut read = Vec::new();
    while let Ok(1..) = pipe.read(&mut read, &mut None).await {
        lines.add(&read, &hear);
        read.clear();
    }
    lines.end_line(&hear);
    Ok(())
}

fn too_much() -> Failure {
    Failure::new(format_args!("the process printed over {MAX_OUTPUT} bytes: killed"))
}

/// The result: the output without its last line end, as JSON if it is JSON, otherwise as text; none if it is empty.
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
