//! Mode `process`: in a child process, which has all cores but is polite, and dies with its parent.
//!
//! Both ends are here. They speak the line protocol of child processes: one JSON object a line, in `{"id","body"}`, out
//! `{"event":"match","data":[…]}` as found, then `{"event":"end","data":{"count","complete"}}` or
//! `{"event":"error","message"}`. A full pipe holds the search up. The end of its input tells the child that its parent is
//! gone, however it went: it ends at once, whatever it is doing.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufWriter, Write as _},
    ops::ControlFlow,
    path::PathBuf,
    process::Stdio,
    sync::mpsc,
    thread,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout, Command},
};

use super::{
    inline::solve,
    problem::{Problem, Summary, Task, Wish},
};
use crate::process::{Child, Tail};

/// How much lower than its parent's the priority of the child is.
const POLITENESS: i32 = 10;
/// Matches taken together at most.
const TOGETHER: usize = 4096;

/// The program that runs [`serve`] if it is started with these arguments.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// What makes it run [`serve`].
    pub arguments: Vec<OsString>,
}

/// Why a search in a child process ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It was refused, as [`solve`] refuses.
    #[error("{0}")]
    Refused(String),
    /// The child cannot be started.
    #[error("cannot start a child process: {0}")]
    Start(#[source] io::Error),
    /// The child ended, or cannot be heard.
    #[error("the child process of the search was lost: {0}")]
    Lost(String),
}

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    body: Task,
}

/// What is said of a search, as its line protocol has it: `{"event":"match","data":[…]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A match.
    Match {
        /// The integers, in their order.
        data: Vec<i64>,
    },
    /// It is at its end.
    End {
        /// How it went.
        data: Summary,
    },
    /// It was not begun.
    Error {
        /// Why.
        message: String,
    },
}

/// A search in a child process. Dropped, it is over, and the child with it.
#[derive(Debug)]
pub struct InProcess {
    child: Child,
    /// The order, until it is written.
    order: Vec<u8>,
    /// Open as long as the child is to live.
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    errors: Option<Tail>,
    line: Vec<u8>,
    summary: Option<Summary>,
}

impl InProcess {
    /// Starts the child.
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(program: &Program, problem: &Problem, wish: &Wish) -> Result<Self, ProcessError> {
        let order = Order { id: 1, body: Task::new(problem, wish) };
        let mut order = serde_json::to_vec(&order).map_err(|error| ProcessError::Lost(error.to_string()))?;
        order.push(b'\n');
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start(&mut command).map_err(ProcessError::Start)?;
        let (input, output) = (child.input(), child.output().map(|it| BufReader::with_capacity(64 << 10, it)));
        let errors = child.errors().map(|it| Tail::of(it, None));
        Ok(Self { child, order, input, output, errors, line: Vec::new(), summary: None })
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The next matches, as many as are there; nothing at the end.
    ///
    /// # Errors
    /// [`ProcessError`]; the search is over then.
    ///
    /// # Cancel safety
    /// Matches that were being read may be lost: drop it then.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<i64>>>, ProcessError> {
        if let Some(input) = self.input.as_mut().filter(|_| !self.order.is_empty()) {
            // One that is gone has said why, or is found lost below.
            input.write_all(&self.order).await.ok();
            self.order.clear();
        }
        let mut matches = Vec::new();
        while self.summary.is_none() {
            let Some(output) = &mut self.output else { return Err(ProcessError::Lost("it has no output".to_owned())) };
            if matches.len() >= TOGETHER || (!matches.is_empty() && !output.buffer().contains(&b'\n')) {
                break;
            }
            self.line.clear();
            match output.read_until(b'\n', &mut self.line).await {
                Ok(1..) if self.line.ends_with(b"\n") => {}
                Ok(_) => return Err(self.lost().await),
                Err(error) => return Err(ProcessError::Lost(error.to_string())),
            }
            match serde_json::from_slice(&self.line) {
                Ok(Event::Match { data }) => matches.push(data),
                Ok(Event::End { data }) => self.summary = Some(data),
                Ok(Event::Error { message }) => return Err(ProcessError::Refused(message)),
                Err(error) => return Err(ProcessError::Lost(format!("it says what is no event: {error}"))),
            }
        }
        Ok(Some(matches).filter(|matches| !matches.is_empty()))
    }

    /// How it went, once it is at its end.
    #[must_use]
    pub const fn summary(&self) -> Option<Summary> {
        self.summary
    }

    /// How the child ended, with its last words.
    async fn lost(&mut self) -> ProcessError {
        self.child.kill().await;
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let words = match &mut self.errors {
            Some(errors) => errors.last_line().await,
            None => String::new(),
        };
        ProcessError::Lost(if words.is_empty() { how } else { format!("{how}, after it said: {words}") })
    }
}

/// The child: solves what it reads from standard input, one task after the other, until that ends. Never returns while its
/// parent lives.
///
/// # Errors
/// If its output cannot be written.
pub fn serve() -> io::Result<()> {
    // Whoever cannot be polite is not.
    rustix::process::nice(POLITENESS).ok();
    let (orders, order) = mpsc::channel();
    // It reads on while a search runs, and so hears that its parent is gone.
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if orders.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    for line in order {
        answer(&line, &mut output)?;
        output.flush()?;
    }
    Ok(())
}

/// Solves one task.
fn answer(line: &str, output: &mut impl io::Write) -> io::Result<()> {
    let mut written = Ok(());
    let solved = match serde_json::from_str(line) {
        Ok(Order { body, .. }) => {
            let (problem, wish) = body.told();
            let solved = solve(&problem, &wish, &|| false, |matches| {
                let said = matches.into_iter().try_for_each(|it| say(output, &Event::Match { data: it }));
                written = said.and_then(|()| output.flush());
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            solved.map_err(|refusal| refusal.to_string())
        }
        Err(error) => Err(format!("this is no task: {error}")),
    };
    written?;
    say(output, &solved.map_or_else(|message| Event::Error { message }, |data| Event::End { data }))
}

fn say(output: &mut impl io::Write, event: &Event) -> io::Result<()> {
    serde_json::to_writer(&mut *output, event)?;
    output.write_all(b"\n")
}
