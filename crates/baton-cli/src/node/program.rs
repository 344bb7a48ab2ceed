//! Programs as handlers: how they are started, and where what they print goes.

use std::{io, sync::Arc, time::Duration};

use baton::{
    Name, Node, QueuePolicy, Shutdown,
    builtin::{
        Exec, ExecOnce,
        subset_sum::{InFleet, OUTPUT_TIMEOUT},
    },
    pool::{Limits, Program, Spoken},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Log, interpreter, shell};
use crate::exit::Failure;

/// How a command is written.
const ADVICE: &str = "name a program and its words, as 'python3 fetch.py'; a shell is one too: sh -c '…'";

/// Files that this process has open for a child: three pipes, two handles, and a pipe more while it starts.
const FILES_A_CHILD: u64 = 7;
/// And for all else.
const FILES_BESIDE: u64 = 128;

/// How long a child that searches stays without a search: they are few and far between.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A program that runs messages.
#[derive(Debug, Clone)]
pub(super) struct ProgramTask {
    program: Program,
    /// What may be wrong with its command.
    doubts: Vec<String>,
    /// Whether each message has a process of its own.
    once: bool,
    /// Whether it searches for subset sums, and its messages may be split into parts.
    searches: bool,
    pub(super) bounds: Bounds,
    /// Whether a body may begin with `-` where it could be taken for an option.
    pub(super) allow_dash: bool,
}

/// What one child may take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) max_memory_per_child: Option<u64>,
    pub(super) output_timeout: Option<Duration>,
    pub(super) max_messages_per_child: Option<u64>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) warm: Option<usize>,
}

/// What the programs of a node speak to.
pub(super) struct Stage<'a> {
    pub(super) log: &'a Arc<Log>,
    pub(super) shutdown: &'a Shutdown,
    /// Whether what they answer is printed.
    pub(super) prints: bool,
}

impl ProgramTask {
    /// The program of a command line that a flag gives. One that is not there is refused before anything is touched.
    pub(super) fn new(line: &str, once: bool, flag: &str) -> Result<Self, Failure> {
        let parsed = Self::parse(line, once);
        let task = parsed.map_err(|(cause, next)| Failure::usage(format!("{flag}: {cause}"), next))?;
        task.check(flag)?;
        Ok(task)
    }

    /// The program of a command line, here or not; or what is wrong with that, and what to do.
    pub(super) fn parse(line: &str, once: bool) -> Result<Self, (String, &'static str)> {
        let program = Program::parse(line).map_err(|error| (error.to_string(), ADVICE))?;
        if !once && program.to_string().contains("{}") {
            return Err((
                "{} stands for one message, and a child gets many".to_owned(),
                "take --exec-once (in a file exec_once), or read the body from the line that comes on standard input",
            ));
        }
        let words: Vec<_> = program.words().map(|word| word.to_string_lossy().into_owned()).collect();
        let code = shell::code(&words);
        // Code that is the body and nothing else is what somebody wants; a body within code is read as code by mistake.
        if code.as_ref().is_some_and(|code| code.contains("{}") && code.trim() != "{}") {
            return Err((
                "{} inside the text of sh -c would be run as code".to_owned(),
                "write sh -c 'cmd \"$1\"' sh {}",
            ));
        }
        let interpreted = interpreter::code_with_body(&words);
        if let Some(interpreter::Code { program, advice }) = &interpreted {
            return Err((format!("{{}} inside the text that {program} runs would be run as code"), advice));
        }
        let for_a_shell = code.is_none().then(|| shell::meant_for_one(line)).flatten().map(|word| {
            format!("no shell reads the command, so {word} is a word like any other; sh -c '…' is one that does")
        });
        let like_code = interpreter::like_code(&words).filter(|_| code.is_none()).map(|option| {
            format!("if the word behind {option} is code, a body in place of {{}} is run as code; let the code read it as an argument")
        });
        let doubts = for_a_shell.into_iter().chain(like_code).collect();
        Ok(Self { once, doubts, ..Self::of(program) })
    }

    /// A program that is there, whose children get many messages.
    pub(super) fn of(program: Program) -> Self {
        Self { program, doubts: Vec::new(), once: false, searches: false, bounds: Bounds::default(), allow_dash: false }
    }

    /// One that searches for subset sums, and shows every second that it does.
    pub(super) fn searching(program: Program) -> Self {
        let bounds =
            Bounds { output_timeout: Some(OUTPUT_TIMEOUT), idle_timeout: Some(IDLE_TIMEOUT), ..Bounds::default() };
        Self { searches: true, bounds, ..Self::of(program) }
    }

    /// Refuses a program that is not here; `whose` is who names it.
    pub(super) fn check(&self, whose: &str) -> Result<(), Failure> {
        self.program.check().map_err(|error| Failure::new(format!("{whose}: {error}"), ADVICE))
    }

    /// What may be wrong with the command.
    pub(super) fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Sees to it that so many children at once can have their pipes.
    pub(super) fn make_room(children: usize) -> Result<(), Failure> {
        let needed = (children as u64).saturating_mul(FILES_A_CHILD).saturating_add(FILES_BESIDE);
        let limit = getrlimit(Resource::Nofile);
        if limit.current.is_none_or(|current| current >= needed) {
            return Ok(());
        }
        // Over its upper bound the system does not let it be raised.
        if setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).is_err() {
            return Err(Failure::new(
                format!("{children} children at once need {needed} open files, and this process may have fewer"),
                format!("take a smaller --concurrency, or raise the limit: ulimit -n {needed}"),
            ));
        }
        Ok(())
    }

    /// Whether a child gets one message after the other.
    pub(super) const fn stays(&self) -> bool {
        !self.once
    }

    /// How many run at once where nobody says it.
    pub(super) fn at_once() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Gives the queue to the node; the pool of its children, if they are to be closed behind it.
    pub(super) fn give(
        &self, node: Node, queue: &Name, policy: &QueuePolicy, stage: &Stage<'_>,
    ) -> (Node, Option<Exec>) {
        let Bounds { max_memory_per_child, output_timeout, max_messages_per_child, idle_timeout, warm } = self.bounds;
        let warm = warm.unwrap_or_default();
        // The child ends with its time, and only then is its message settled: that is for the pool to see to.
        // A search has its own default, and no further attempt after it.
        let (children, timeout) = (policy.concurrency, policy.timeout.filter(|_| !self.searches));
        let limits = Limits {
            children,
            timeout,
            max_memory_per_child,
            output_timeout,
            max_messages_per_child,
            idle_timeout,
            warm,
            ..Limits::default()
        };
        let node = node.policy(QueuePolicy { timeout: None, ..policy.clone() });
        let hear = murmur(stage.log, queue);
        let print = stage.prints.then(|| printer(stage));
        if self.once {
            let exec = ExecOnce::new(self.program.clone(), limits).on_errors(hear);
            let exec = if self.allow_dash { exec.allow_dash() } else { exec };
            let exec = match print {
                Some(print) => exec.on_output(print),
                None => exec,
            };
            return (node.handle_with(queue.as_str(), exec), None);
        }
        let exec = Exec::new(self.program.clone(), limits).on_errors(hear);
        let exec = match print {
            Some(print) => exec.on_output(print),
            None => exec,
        };
        let node = if self.searches {
            node.handle_with(queue.as_str(), InFleet::new(exec.clone()).timeout(policy.timeout))
        } else {
            node.handle_with(queue.as_str(), exec.clone())
        };
        (node, Some(exec))
    }
}

/// Prints each answer whole. Where nobody reads any more, the node stops: what is not done waits.
fn printer(stage: &Stage<'_>) -> impl Fn(&[u8]) -> io::Result<()> + Send + Sync + 'static {
    let (log, shutdown) = (stage.log.clone(), stage.shutdown.clone());
    move |output| {
        // A reader that stands still holds up this message, and nothing else of the process.
        tokio::task::block_in_place(|| log.print(output)).inspect_err(|error| {
            log.say(&format!("cannot print the output: {error}; stopping, and what is not done waits in its queue"));
            shutdown.now();
        })
    }
}

/// Logs what programs print on their standard error.
fn murmur(log: &Arc<Log>, queue: &Name) -> impl Fn(&Spoken<'_>) + Send + Sync + 'static {
    let (log, queue) = (log.clone(), queue.clone());
    move |spoken| log.spoken(&queue, spoken)
}
