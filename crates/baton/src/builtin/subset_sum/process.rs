//! Mode `process`: in a child process, which has all cores but is polite, and dies with its parent.
//!
//! Both ends are here. They speak the line protocol of child processes: one JSON object a line, in `{"id","call","body"}`, out
//! `{"event":"match","key":"1f","data":[…]}` as found, where the key has a bit for each integer, then
//! `{"event":"end","data":{"count","complete"}}` or `{"event":"error","message"}`. A task without a call is followed by nobody:
//! its matches come together, in the end, as many as are asked for, or 1,000, and half a MiB at most. A part of a problem also
//! tells `{"event":"part","key","data":{"count","complete"}}`.
//!
//! While it searches and finds nothing, it prints an empty line every second: a child that stands still is told from one that
//! has much to do.
//!
//! A full pipe holds the search up. The end of its input tells the child that its parent is gone, however it went: it ends at
//! once, whatever it is doing.

use std::{
    io::{self, BufRead as _, BufWriter, Write as _},
    ops::ControlFlow,
    process::Stdio,
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
    time::timeout,
};

use super::{
    inline::search,
    problem::{Part, Problem, SearchOptions, Summary, Task},
};
use crate::{
    pool::Program,
    process::{Child, Tail},
};

/// How much lower than its parent's the priority of the child is.
const POLITENESS: i32 = 10;
/// The call of a search that is followed here, and not through a fleet.
const FOLLOWED: &str = "subset-sum/1";
/// Matches taken together at most.
const BATCH: usize = 4096;
/// Matches told together where no limit is named.
const DEFAULT_LIMIT: u64 = 1000;
/// Bytes of matches told together, as JSON.
const MOST_TOGETHER: usize = 512 << 10;

/// How often a child that finds nothing shows that it searches.
const BREATH: Duration = Duration::from_secs(1);
/// How long a child may print nothing, unless that is said: it prints something every second.
pub const OUTPUT_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a search in a child process ended before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It was refused, as [`solve`](super::solve) refuses.
    #[error("{0}")]
    Refused(String),
    /// The child cannot be started.
    #[error("cannot start a child process: {0}")]
    Start(#[source] io::Error),
    /// The child ended, or cannot be heard.
    #[error("the child process of the search was lost: {0}")]
    Lost(String),
    /// The child printed nothing for so long.
    #[error(
        "the child process of the search printed nothing for {0:?} and was killed: run it again, or allow more time"
    )]
    Silent(Duration),
}

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    body: Task,
}

/// What is said of a search, as its line protocol has it: `{"event":"match","data":[…]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A match.
    Match {
        /// By what it is the same in every attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The integers, in their order.
        data: Vec<i64>,
    },
    /// A part of a search is at its end.
    Part {
        /// By what it is the same in every attempt.
        key: String,
        /// How it went.
        data: Summary,
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
        /// Whether it would be so again; it would.
        #[serde(default)]
        fatal: bool,
    },
}

/// All matches that fit, and how it went.
#[derive(Debug, Default, Serialize)]
struct Together {
    #[serde(flatten)]
    summary: Summary,
    matches: Vec<Vec<i64>>,
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
    output_timeout: Duration,
}

impl InProcess {
    /// Starts the child: a program that runs [`serve`].
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(program: &Program, problem: &Problem, options: &SearchOptions) -> Result<Self, ProcessError> {
        let order = Order { id: 1, call: Some(FOLLOWED.to_owned()), body: Task::new(problem, options) };
        let mut order = serde_json::to_vec(&order).map_err(|error| ProcessError::Lost(error.to_string()))?;
        order.push(b'\n');
        let mut command = program.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::start(&mut command).map_err(ProcessError::Start)?;
        let (input, output) = (child.input(), child.output().map(|it| BufReader::with_capacity(64 << 10, it)));
        let errors = child.errors().map(|it| Tail::of(it, None));
        let (line, output_timeout) = (Vec::new(), OUTPUT_TIMEOUT);
        Ok(Self { child, order, input, output, errors, line, summary: None, output_timeout })
    }

    /// How long its child may print nothing before it is killed: 30 s by default.
    #[must_use]
    pub const fn output_timeout(mut self, output_timeout: Duration) -> Self {
        self.output_timeout = output_timeout;
        self
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
            if matches.len() >= BATCH || (!matches.is_empty() && !output.buffer().contains(&b'\n')) {
                break;
            }
            self.line.clear();
            match timeout(self.output_timeout, output.read_until(b'\n', &mut self.line)).await {
                Ok(Ok(1)) if self.line == b"\n" => continue,
                Ok(Ok(1..)) if self.line.ends_with(b"\n") => {}
                Ok(Ok(_)) => return Err(self.lost().await),
                Ok(Err(error)) => return Err(ProcessError::Lost(error.to_string())),
                Err(_) => {
                    self.child.kill().await;
                    return Err(ProcessError::Silent(self.output_timeout));
                }
            }
            match serde_json::from_slice(&self.line) {
                Ok(Event::Match { data, .. }) => matches.push(data),
                Ok(Event::Part { .. }) => {}
                Ok(Event::End { data }) => self.summary = Some(data),
                Ok(Event::Error { message, .. }) => return Err(ProcessError::Refused(message)),
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
    let mouth = Mouth::new();
    for line in order {
        match serde_json::from_str::<Order>(&line) {
            Ok(Order { call, body, .. }) => {
                let (problem, options) = body.told();
                match call {
                    Some(_) => tell_as_found(&problem, &options, &mouth)?,
                    None => tell_together(&problem, &options, &mouth)?,
                }
            }
            Err(error) => mouth.refuse(&format!("the body is no task of this handler: {error}"))?,
        }
    }
    Ok(())
}

/// What a child says. Whole lines: several threads search, and any of them may show that it does.
struct Mouth {
    output: Mutex<BufWriter<io::Stdout>>,
    /// When something was said last.
    said: Mutex<Instant>,
}

impl Mouth {
    fn new() -> Self {
        let output = BufWriter::with_capacity(64 << 10, io::stdout());
        Self { output: Mutex::new(output), said: Mutex::new(Instant::now()) }
    }

    /// Says these, and has them heard.
    fn say<E: Serialize>(&self, events: impl IntoIterator<Item = E>) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            serde_json::to_writer(&mut *output, &event)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(())
    }

    fn refuse(&self, why: &str) -> io::Result<()> {
        self.say([Event::Error { message: why.to_owned(), fatal: true }])
    }

    /// Shows that the search goes on, if nothing was said for a while. Asked whether it is cancelled, a search never is.
    fn breathe(&self) -> bool {
        if let Ok(mut said) = self.said.try_lock()
            && said.elapsed() >= BREATH
            // Whoever says something shows it too.
            && let Ok(mut output) = self.output.try_lock()
        {
            // A parent that is gone ends this process.
            output.write_all(b"\n").and_then(|()| output.flush()).ok();
            *said = Instant::now();
        }
        false
    }
}

fn tell_as_found(problem: &Problem, options: &SearchOptions, mouth: &Mouth) -> io::Result<()> {
    let mut written = Ok(());
    let solved = search(problem, options, &|| mouth.breathe(), |subsets| {
        let found = subsets.into_iter();
        written = mouth
            .say(found.map(|subset| Event::Match { key: Some(format!("{subset:x}")), data: problem.chosen(subset) }));
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    match solved {
        Ok(data) => {
            if let Some(Part(from, to)) = problem.part() {
                mouth.say([Event::Part { key: format!("part:{from}:{to}"), data }])?;
            }
            mouth.say([Event::End { data }])
        }
        Err(refusal) => mouth.refuse(&refusal.to_string()),
    }
}

fn tell_together(problem: &Problem, options: &SearchOptions, mouth: &Mouth) -> io::Result<()> {
    #[derive(Serialize)]
    struct End<'a> {
        event: &'a str,
        data: &'a Together,
    }
    let options =
        SearchOptions { limit: options.limit.or(Some(DEFAULT_LIMIT).filter(|_| !options.count_only)), ..*options };
    let (mut told, mut bytes) = (Together::default(), 0);
    let solved = search(problem, &options, &|| mouth.breathe(), |subsets| {
        for numbers in subsets.into_iter().map(|subset| problem.chosen(subset)) {
            bytes += serde_json::to_string(&numbers).map_or(0, |text| text.len() + 1);
            if bytes > MOST_TOGETHER {
                return ControlFlow::Break(());
            }
            told.matches.push(numbers);
        }
        ControlFlow::Continue(())
    });
    match solved {
        Ok(summary) => {
            let count = if options.count_only { summary.count } else { told.matches.len() as u64 };
            told.summary = Summary { count, ..summary };
            mouth.say([End { event: "end", data: &told }])
        }
        Err(refusal) => mouth.refuse(&refusal.to_string()),
    }
}
