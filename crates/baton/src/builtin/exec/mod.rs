//! Handlers in any language: programs that get messages over a pipe.
//!
//! [`Exec`] keeps children that get one message after the other, by the line protocol of [`pool`](crate::pool);
//! [`ExecOnce`] starts a process for each message. A program that misbehaves fails the message that it was given, and no
//! other.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use baton::{Shutdown, Fleet, QueuePolicy, builtin::Exec, pool::{Limits, Program}};
//!
//! baton::pool::guard_children(); // first in main: children end with the program, also if it is killed
//! let program = Program::parse("python3 resize.py")?;
//! program.check()?; // that it is there
//! let limits = Limits { children: 4, ..Limits::default() };
//! let exec = Exec::new(program, limits);
//! let node = Fleet::connect("sqlite:jobs.db")?.node().policy(QueuePolicy { concurrency: 4, ..QueuePolicy::default() });
//! node.handle_with("resize", exec.clone()).run(Shutdown::new()).await?;
//! exec.close().await; // their input ends, and so do they
//! # Ok(()) }
//! ```

mod once;
mod telling;
mod template;

use std::{fmt, future, io, sync::Arc};

use rustix::io::Errno;
use serde_json::value::RawValue;

pub use self::once::ExecOnce;
use crate::{
    Context, Done, Failure, Handler, Message,
    pool::{Ear, Limits, Pool, PoolError, Program, Spoken, Task},
};

/// Gets the output of a message's program before the message counts as done.
type Printer = Arc<dyn Fn(&[u8]) -> io::Result<()> + Send + Sync>;

/// The listeners to the output of programs.
#[derive(Clone, Default)]
struct Ears {
    errors: Option<Ear>,
    output: Option<Printer>,
}

impl Ears {
    /// Prints once for each run of the message. A message whose output cannot be printed is not done.
    fn print(&self, output: &[u8]) -> Result<(), Failure> {
        let cannot =
            |error| Failure::retry_after(std::time::Duration::ZERO, format_args!("cannot print the output: {error}"));
        self.output.as_ref().map_or(Ok(()), |print| print(output).map_err(cannot))
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ears").finish_non_exhaustive()
    }
}

/// Has a pool of children run messages; each child runs one at a time. Clones share the pool.
///
/// The concurrency of the queue and [`Limits::children`] should be equal. Set the timeout in the limits and not for the
/// queue: the limits end the child too.
#[derive(Debug, Clone)]
pub struct Exec {
    pub(in crate::builtin) pool: Pool,
    ears: Ears,
}

impl Exec {
    /// Children that run this program.
    #[must_use]
    pub fn new(program: Program, limits: Limits) -> Self {
        Self { pool: Pool::new(program, limits), ears: Ears::default() }
    }

    /// Calls `hear` with each line that a child prints on its standard error, at most 400 bytes of it.
    #[must_use]
    pub fn on_errors(mut self, hear: impl Fn(&Spoken<'_>) + Send + Sync + 'static) -> Self {
        self.pool = self.pool.heard_by(Arc::new(hear));
        self
    }

    /// Calls `print` with the `data` of each `end` and a line end, before the message counts as done. If the message runs
    /// again, `print` may be called again.
    #[must_use]
    pub fn on_output(mut self, print: impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.ears.output = Some(Arc::new(print));
        self
    }

    /// Starts the children that [`Limits::warm`] asks for, before the first message.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn warm_up(&self) {
        self.pool.warm_up();
    }

    /// Lets children finish, closes their input, and waits until they have ended. Without this they are killed when the
    /// last clone is dropped.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Handler for Exec {
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let Self { pool, ears } = self.clone();
        context.waits_in_thread();
        async move {
            let key = message.key();
            let &Message { id, attempts, crashes, .. } = &message;
            let (queue, body) = (message.queue.as_str(), &message.body);
            let call = context.call().map(ToString::to_string);
            let task = Task { id: id.0, key: &key, queue, attempt: attempts + 1, crashes, call: call.as_deref(), body };
            let result = match &call {
                // Without a follower its events are dropped.
                None => pool.run(&task, |_| future::ready(Ok(()))).await,
                Some(_) => {
                    let (ear, mouth) = telling::way(&context);
                    let run = async move { Ok(pool.run(&task, move |event| ear.hear(&event)).await) };
                    tokio::try_join!(run, mouth.tell()).and_then(|(result, ())| result)
                }
            };
            let result = result.map_err(failed)?;
            let Some(result) = result.filter(|result| result.get() != "null") else { return Ok(Done::default()) };
            ears.print(format!("{}\n", result.get()).as_bytes())?;
            Ok(Done::with::<RawValue>(&result)?)
        }
    }
}

fn failed(error: PoolError) -> Failure {
    match error {
        PoolError::Failed { message, fatal: true } => Failure::fatal(message),
        PoolError::Busy { .. } | PoolError::Closed => Failure::temporary(error),
        PoolError::Ended { status, .. } if status.success() => {
            Failure::new(format!("{error}; a program that ends behind one message is for --exec-once (ExecOnce)"))
        }
        PoolError::Start { error, program } => not_started(&program, &error),
        error => Failure::new(error),
    }
}

/// The failure of a program that did not start. It is temporary where the system has no room for another process.
fn not_started(program: &str, error: &io::Error) -> Failure {
    let text = format!("cannot start {program}: {error}");
    if error.raw_os_error() == Some(Errno::TOOBIG.raw_os_error()) {
        return Failure::fatal(format!("{text}; read a long body from standard input, not from `{{}}`"));
    }
    // Too many processes, files or bytes, in this process or in the system.
    let is_full = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE].map(|it| Some(it.raw_os_error()));
    if is_full.contains(&error.raw_os_error()) { Failure::temporary(text) } else { Failure::new(text) }
}
