//! The flags that say what a node does with messages, and how it keeps its place in the fleet.

use std::{ffi::OsString, time::Duration};

use baton::{DEFAULT_QUEUE, Name, Node, builtin::Demo, settings::quantity};
use clap::ValueEnum;

use super::{
    demonstration::Demonstration,
    program::ProgramTask,
    queue_work::{QueueWork, Task},
};
use crate::{command::subset_sum, exit::Failure};

/// The queue, its handler, and the lease. What is not said is the queue's own: its default, or what a file says.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct Work {
    /// The queue to work for [default: messages]. With a file that describes queues: a queue to choose, and the flag may be
    /// given several times
    #[arg(long = "queue", value_name = "NAME")]
    queues: Vec<Name>,
    /// Run messages with children of this command that stay, one for each message at work. A child reads each message as a
    /// line of JSON from its standard input, {"id":7,"key":…,"queue":…,"attempt":1,"crashes":0,"body":…}, with "call" if
    /// callers may follow its events. It answers with the line {"id":7,"event":"end","data":…} or
    /// {"id":7,"event":"error","message":…}
    #[arg(long, value_name = "COMMAND", conflicts_with = "handler")]
    exec: Option<String>,
    /// Run each message with a process of its own. It gets the body on standard input, a JSON string as its text, or in place
    /// of {} in the command (put -- before it: curl -fsS -- {}). BATON_MESSAGE_KEY, BATON_QUEUE, BATON_ID, BATON_ATTEMPT and BATON_CRASHES are in its environment.
    /// Exit code 0 means done, and its output is the result; 75 is tried again after the backoff, any other
    /// as --retries says. No shell reads the command; if you want one, give it the body as an argument:
    /// sh -c 'gzip -k -- "$1"' sh {}
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["handler", "exec"])]
    exec_once: Option<String>,
    /// Let a body that replaces {} begin with - without a word -- before it. The command of --exec-once would take it for an
    /// option, so it is refused otherwise
    #[arg(long, requires = "exec_once")]
    allow_dash: bool,
    /// Run messages with a handler of the program itself
    #[arg(long, value_enum, value_name = "NAME")]
    handler: Option<Built>,
    #[command(flatten)]
    pub(super) demo: Demonstration,
    /// How many messages one process runs at once [default: 64; with --exec and --exec-once as many as cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: Option<u32>,
    /// How often a failed message is tried again before it has failed for good [default: 0]
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u32>)]
    retries: Option<u32>,
    /// The pause before the first retry; it doubles with each [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    backoff: Option<Duration>,
    /// The longest an attempt may take [default: none]. A child that takes longer gets SIGTERM, and SIGKILL 2 s later
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    timeout: Option<Duration>,
    /// The longest a child may print nothing while it has a message [default: none]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    output_timeout: Option<Duration>,
    /// The most memory a child may use, with what it starts [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    max_memory_per_child: Option<u64>,
    /// Messages after which a child is replaced [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_messages_per_child: Option<u64>,
    /// How long a child may wait for a message before it is ended [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    idle_timeout: Option<Duration>,
    /// Children that are started before the first message and kept despite --idle-timeout, at most as many as --concurrency
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = quantity::whole::<usize>)]
    warm: Option<usize>,
    /// After this time without a sign of life other nodes take over its work
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::time)]
    pub(crate) lease: Duration,
    /// How often it gives a sign of life; at most a third of the lease
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = quantity::time)]
    heartbeat: Duration,
    /// Sources wait while the queue holds more than this
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = quantity::bytes)]
    max_queue_bytes: u64,
}

/// Handlers that come with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Built {
    /// A demonstration: takes a while and fails now and then
    Demo,
    /// Throws messages away: they count as done
    Noop,
    /// Finds the subsets of integers that have a sum, in children: the body is {"data":[…],"sum":N,"limit":1000,
    /// "count_only":false}, the result {"count","complete","matches"}; of a call each match is an event, and with
    /// "parts":64 the call is split into 64 messages
    SubsetSum,
}

impl Built {
    const fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Noop => "noop",
            Self::SubsetSum => "subset-sum",
        }
    }

    pub(super) fn task(self) -> Result<Task, Failure> {
        Ok(match self {
            Self::Demo => Task::Demo(Demo::default()),
            Self::Noop => Task::Noop,
            Self::SubsetSum => Task::Program(ProgramTask::searching(subset_sum::program()?)),
        })
    }
}

impl Work {
    /// Whether neither the queue nor what to do is named.
    pub(super) const fn is_bare(&self) -> bool {
        self.queues.is_empty() && self.handler.is_none() && self.exec.is_none() && self.exec_once.is_none()
    }

    /// Whether this is the demonstration.
    pub(crate) const fn demonstrates(&self) -> bool {
        self.demo.wanted
    }

    /// The demonstration, on this queue.
    pub(super) fn demonstrate_on(&mut self, queue: &Name) {
        self.queues = vec![queue.clone()];
        self.handler = Some(Built::Demo);
    }

    /// The queue that the flags describe.
    pub(super) fn described(&self) -> Result<QueueWork, Failure> {
        if let [_, second, ..] = self.queues.as_slice() {
            return Err(Failure::usage(
                format!("--queue {second} is a second one, and flags describe one queue"),
                "describe several in a baton.toml: see `baton config --help`",
            ));
        }
        let named = self.queues.first().cloned().map_or_else(|| Name::new(DEFAULT_QUEUE), Ok);
        let queue = named.map_err(|error| Failure::usage(error.to_string(), "name another with --queue"))?;
        let mut work = QueueWork::of(queue);
        self.override_in(&mut work)?;
        Ok(work)
    }

    /// The queues that are named.
    pub(super) fn queues(&self) -> &[Name] {
        &self.queues
    }

    /// The first flag that says something of a queue, if there is one.
    pub(super) fn about_a_queue(&self) -> Option<&'static str> {
        let given = [
            ("--exec", self.exec.is_some()),
            ("--exec-once", self.exec_once.is_some()),
            ("--allow-dash", self.allow_dash),
            ("--handler", self.handler.is_some()),
            ("--demo-delay", self.demo.about_its_handler() == Some("--demo-delay")),
            ("--demo-fail", self.demo.about_its_handler() == Some("--demo-fail")),
            ("--concurrency", self.concurrency.is_some()),
            ("--retries", self.retries.is_some()),
            ("--backoff", self.backoff.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--output-timeout", self.output_timeout.is_some()),
            ("--max-memory-per-child", self.max_memory_per_child.is_some()),
            ("--max-messages-per-child", self.max_messages_per_child.is_some()),
            ("--idle-timeout", self.idle_timeout.is_some()),
            ("--warm", self.warm.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Puts what the flags say in the place of what was said before.
    pub(super) fn override_in(&self, work: &mut QueueWork) -> Result<(), Failure> {
        if let Some(line) = &self.exec {
            work.run_by(ProgramTask::new(line, false, "--exec")?);
        }
        if let Some(line) = &self.exec_once {
            let mut program = ProgramTask::new(line, true, "--exec-once")?;
            program.allow_dash = self.allow_dash;
            work.run_by(program);
        }
        if let Some(built) = self.handler {
            work.take_up(built.task()?);
        }
        self.demo.override_in(work.task.as_mut())?;
        self.check_bounds(work.task.as_ref())?;
        if let Some(Task::Program(program)) = &mut work.task {
            let bounds = &mut program.bounds;
            bounds.max_memory_per_child = self.max_memory_per_child.or(bounds.max_memory_per_child);
            bounds.output_timeout = self.output_timeout.or(bounds.output_timeout);
            bounds.max_messages_per_child = self.max_messages_per_child.or(bounds.max_messages_per_child);
            bounds.idle_timeout = self.idle_timeout.or(bounds.idle_timeout);
            bounds.warm = self.warm.or(bounds.warm);
        }
        let policy = &mut work.policy;
        policy.concurrency = self.concurrency.map_or(policy.concurrency, |it| it as usize);
        policy.retries = self.retries.unwrap_or(policy.retries);
        policy.backoff = self.backoff.unwrap_or(policy.backoff);
        policy.timeout = self.timeout.or(policy.timeout);
        Ok(())
    }

    /// Refuses bounds of children where there are none, or none that stay.
    fn check_bounds(&self, task: Option<&Task>) -> Result<(), Failure> {
        let given = [
            ("--output-timeout", self.output_timeout.is_some(), true),
            ("--max-messages-per-child", self.max_messages_per_child.is_some(), true),
            ("--idle-timeout", self.idle_timeout.is_some(), true),
            ("--warm", self.warm.is_some(), true),
            ("--max-memory-per-child", self.max_memory_per_child.is_some(), false),
        ];
        let Some((flag, _, staying)) = given.into_iter().find(|(_, given, _)| *given) else { return Ok(()) };
        match task {
            Some(Task::Program(program)) if !staying || program.stays() => Ok(()),
            Some(Task::Program(_)) => {
                Err(Failure::usage(format!("{flag} is for children that stay"), "take --exec, or leave it out"))
            }
            _ => Err(Failure::usage(format!("{flag} is for children, and none is named"), "add --exec or --exec-once")),
        }
    }

    /// Refuses what no store would take.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let (lease, heartbeat) = (self.lease, self.heartbeat);
        if heartbeat.is_zero() || lease < Duration::from_millis(10) || heartbeat * 3 > lease {
            return Err(Failure::usage(
                format!("a heartbeat of {heartbeat:?} does not fit a lease of {lease:?}"),
                "take at most a third of the lease, and a lease of 10ms or more",
            ));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Failure::usage("--timeout 0 lets no attempt end", "leave it out for none"));
        }
        Ok(())
    }

    /// How the node keeps its place, and how long its sources may go on.
    pub(super) fn place(&self, node: Node) -> Node {
        node.lease(self.lease, self.heartbeat).max_queue_bytes(self.max_queue_bytes)
    }

    /// The flags that describe this work to another process.
    pub(super) fn flags(&self) -> Vec<OsString> {
        let time = |time: Duration| format!("{}ms", time.as_secs_f64() * 1000.0);
        let handler = self.handler.map(|handler| handler.name().to_owned());
        let flags = [
            ("--handler", handler),
            ("--concurrency", self.concurrency.map(|it| it.to_string())),
            ("--retries", self.retries.map(|it| it.to_string())),
            ("--backoff", self.backoff.map(time)),
            ("--timeout", self.timeout.map(time)),
            ("--lease", Some(time(self.lease))),
            ("--heartbeat", Some(time(self.heartbeat))),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.into(), value?.into()]));
        let queues = self.queues.iter().map(|queue| ["--queue".into(), queue.as_str().into()]);
        queues.chain(given).chain(self.demo.flags()).flatten().collect()
    }
}
