//! What a node does with messages, and how it keeps its place in the fleet.

use std::{ffi::OsString, ops::RangeInclusive, time::Duration};

use baton::{
    DEFAULT_QUEUE, Name, Node, QueuePolicy,
    jobs::{Demo, Noop},
    settings::quantity,
};
use clap::ValueEnum;

use crate::exit::Failure;

/// The queue, its handler, and the lease.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Work")]
pub(crate) struct Work {
    /// The queue to work for [default: messages]
    #[arg(long, value_name = "NAME")]
    queue: Option<Name>,
    /// What to do with a message; must be named. What does real work is a Rust program for now: see README
    #[arg(long, value_enum, value_name = "NAME")]
    handler: Option<Built>,
    /// How long the handler demo takes, as 20ms or 0..1000ms
    #[arg(long, value_name = "RANGE", default_value = "0..1000ms", value_parser = quantity::range)]
    demo_delay: RangeInclusive<Duration>,
    /// How likely the handler demo fails, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0.15", value_parser = quantity::share)]
    demo_fail: f64,
    /// Messages at work at once in one process
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// Attempts after the first, before a message goes to the errors
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// The pause before the first retry; it doubles with each
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::time)]
    backoff: Duration,
    /// The longest an attempt may take [default: none]
    #[arg(long, value_name = "TIME", value_parser = quantity::time)]
    deadline: Option<Duration>,
    /// Silence after which others take its work
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::time)]
    pub(crate) lease: Duration,
    /// How often it shows that it is alive; at most a third of the lease
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = quantity::time)]
    heartbeat: Duration,
    /// Sources wait while the queue holds more than this
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = quantity::bytes)]
    max_backlog: u64,
}

/// Handlers that come with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Built {
    /// Demonstrates: takes a while and fails now and then
    Demo,
    /// Throws messages away: they count as done
    Noop,
}

impl Work {
    /// Whether neither the queue nor what to do is named.
    pub(super) const fn is_bare(&self) -> bool {
        self.queue.is_none() && self.handler.is_none()
    }

    /// The demonstration, on a queue that is nobody's.
    pub(super) fn demonstrate_on(&mut self, queue: &Name) {
        self.queue = Some(queue.clone());
        self.handler = Some(Built::Demo);
    }

    pub(super) const fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    pub(crate) fn queue(&self) -> Result<Name, Failure> {
        let named = self.queue.clone().map_or_else(|| Name::new(DEFAULT_QUEUE), Ok);
        named.map_err(|error| Failure::usage(error.to_string(), "name another with --queue"))
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
        if self.deadline.is_some_and(|deadline| deadline.is_zero()) {
            return Err(Failure::usage("--deadline 0 lets no attempt end", "leave it out for none"));
        }
        Ok(())
    }

    /// How the node keeps its place, and how long its sources may go on.
    pub(super) fn place(&self, node: Node) -> Node {
        node.lease(self.lease, self.heartbeat).max_backlog(self.max_backlog)
    }

    /// Gives the node its work.
    pub(super) fn give(&self, node: Node, queue: &Name) -> Node {
        let policy = QueuePolicy {
            concurrency: self.concurrency as usize,
            retries: self.retries,
            backoff: self.backoff,
            deadline: self.deadline,
            ..QueuePolicy::default()
        };
        let (node, queue) = (node.policy(policy), queue.as_str());
        match self.handler {
            Some(Built::Demo) => node.handle_with(queue, Demo { delay: self.demo_delay.clone(), fail: self.demo_fail }),
            Some(Built::Noop) => node.handle_with(queue, Noop),
            None => node,
        }
    }

    /// The flags that describe this work to another process.
    pub(crate) fn flags(&self) -> Vec<OsString> {
        let time = |time: Duration| format!("{}ms", time.as_secs_f64() * 1000.0);
        let handler = self.handler.map(|handler| match handler {
            Built::Demo => "demo".to_owned(),
            Built::Noop => "noop".to_owned(),
        });
        let delay = format!("{}..{}", time(*self.demo_delay.start()), time(*self.demo_delay.end()));
        let mut flags = vec![
            ("--demo-delay", delay),
            ("--demo-fail", self.demo_fail.to_string()),
            ("--concurrency", self.concurrency.to_string()),
            ("--retries", self.retries.to_string()),
            ("--backoff", time(self.backoff)),
            ("--lease", time(self.lease)),
            ("--heartbeat", time(self.heartbeat)),
        ];
        flags.extend(self.queue.as_ref().map(|queue| ("--queue", queue.to_string())));
        flags.extend(handler.map(|handler| ("--handler", handler)));
        flags.extend(self.deadline.map(|deadline| ("--deadline", time(deadline))));
        flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]).collect()
    }
}
