//! The ways in which a task can fail.

use std::{io, process::ExitStatus, time::Duration};

use crate::process::ending;

/// The reason for a missing answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// All children are busy, and too many callers wait.
    #[error("all children are busy, and {waiting} callers wait for one")]
    Busy {
        /// Callers that wait.
        waiting: usize,
    },
    /// The pool takes no more tasks.
    #[error("the pool is closed")]
    Closed,
    /// No child can be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The child says that the task failed.
    #[error("{message}")]
    Failed {
        /// Its message.
        message: String,
        /// Whether it would fail again.
        fatal: bool,
    },
    /// It had answered other tasks, and ended or closed its input before it read any of this one. Another child gets the
    /// task.
    #[error("the child ended before it was given its task")]
    Untouched,
    /// One of its events could not be stored.
    #[error("its event {event:?} cannot be stored: {why}")]
    Unemitted {
        /// The event's name.
        event: String,
        /// The reason.
        why: String,
    },
    /// It ended without an answer.
    #[error("the child {} before it answered{}", ending(*status), said(complaints))]
    Ended {
        /// The way it ended.
        status: ExitStatus,
        /// The last lines of its standard error.
        complaints: String,
    },
    /// It closed its output without an answer.
    #[error("the child closed its output before it answered{}", said(complaints))]
    ClosedOutput {
        /// The last lines of its standard error.
        complaints: String,
    },
    /// It closed its input before it had read the task.
    #[error("the child closed its input before it had read its task{}", said(complaints))]
    ClosedInput {
        /// The last lines of its standard error.
        complaints: String,
    },
    /// It printed a line that is no answer: the task fails, since the line may be a broken answer.
    #[error(
        "the child printed a line that is no answer: `{line}`{}; print what is for people on standard error (Python: \
         print(…, file=sys.stderr))", because(why.as_deref())
    )]
    NoEvent {
        /// The beginning of the line.
        line: String,
        /// The fault, if the line looks like an answer.
        why: Option<String>,
    },
    /// It ended in the middle of a line.
    #[error("the child ended in the middle of a line: {line:?}")]
    HalfLine {
        /// The beginning of it.
        line: String,
    },
    /// It printed a line over the limit.
    #[error("the child printed a line of over {limit} bytes")]
    LongLine {
        /// The limit.
        limit: usize,
    },
    /// It answered another task.
    #[error("the child answered task {answered}, but was given {given}")]
    OtherTask {
        /// The task it named.
        answered: String,
        /// The task it was given.
        given: u64,
    },
    /// It took too long.
    #[error("not finished after {0:?} (timeout): killed")]
    Timeout(Duration),
    /// It printed nothing for too long.
    #[error("printed nothing for {0:?} (output timeout): killed")]
    OutputTimeout(Duration),
    /// It took too much memory.
    #[error("used {used} bytes of memory, over its limit of {limit}: killed")]
    Memory {
        /// The bytes it used.
        used: u64,
        /// The most.
        limit: u64,
    },
    /// A pipe failed.
    #[error("cannot talk to the child: {0}")]
    Pipe(#[from] io::Error),
}

fn because(why: Option<&str>) -> String {
    why.map(|why| format!(" ({why})")).unwrap_or_default()
}

fn said(complaints: &str) -> String {
    if complaints.is_empty() { String::new() } else { format!(": {complaints}") }
}
