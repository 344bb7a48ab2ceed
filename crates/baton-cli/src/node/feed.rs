//! The flags for the source of a queue: ticks, lines or a calendar. Without them there is no source.

use std::{path::PathBuf, time::Duration};

use baton::{Name, builtin::CatchUp, settings::quantity};
use clap::ValueEnum;

use super::source_feed::{Pull, SourceFeed, calendar, is_endless};
use crate::exit::Failure;

/// The source. Without one of the first five flags there is none; ticks unless lines or a calendar are named.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Source")]
pub(super) struct Feed {
    /// The source's name; all nodes that offer it must mean the same [default: ticks (demo with --demo), cron:HASH of
    /// expression and queue, lines:HASH of command and queue, lines:FILE:HASH of path and queue, or one of its own for each
    /// standard input]
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<Name>,
    /// A message every interval; 0 is as fast as the store takes them [default with --demo: 500ms]
    #[arg(long, value_name = "TIME", value_parser = quantity::time, conflicts_with_all = ["lines", "lines_from", "cron"])]
    interval: Option<Duration>,
    /// A message for each line of this file, read to its end as it is then; a last line without a line end counts. Blank
    /// lines are skipped. A later run, or another node, goes on with the first line that was not read. A file that
    /// was replaced, shortened, or continued in its last line is refused; --rewind reads it from its start.
    ///
    /// A named pipe (FIFO) is read until its last writer closes it, and its source has ended then. Lines that are written
    /// later need --rewind, each time. Lines that were read cannot be read again, so no other node goes on with a pipe: the
    /// source fails and says how many lines were pushed. The same holds for standard input, `-`, but each run
    /// of it is a new source.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["lines_from", "cron"])]
    lines: Option<PathBuf>,
    /// At the end of the file wait for more lines, as `tail -F` does. Only finished lines are taken. Every file that takes
    /// its name (log rotation) is read from its start, a second later. Missed: a file that has the name for under 25 ms, and
    /// files rotated away while no node read
    #[arg(long, requires = "lines")]
    follow: bool,
    /// A message for each line that this command, run by sh, prints; blank lines are skipped. A later run, or another node,
    /// runs it again and passes over the lines that were sent. It must print the same lines in the same order: if it prints
    /// others, or fails, the source fails too
    #[arg(long, value_name = "COMMAND", conflicts_with = "cron")]
    lines_from: Option<String>,
    /// Lines are JSON values, not text; blank lines are skipped
    #[arg(long, conflicts_with_all = ["cron", "interval"])]
    json_lines: bool,
    /// A message at each due time of this expression, in UTC: `minute hour day month weekday`, with an optional field
    /// for seconds before them and one for years behind those; or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// What to send for due times that were missed [default: skip]
    #[arg(long, value_enum, value_name = "HOW", requires = "cron")]
    catch_up: Option<HowToCatchUp>,
    /// End the source after N messages, counted over the whole fleet; of lines, after line N
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Start the source over; refused while another node runs it
    #[arg(long)]
    pub(super) rewind: bool,
    /// Run messages too that this run did not push and that wait in the queue. Without it, a new source and a handler begin
    /// on such a queue only if a person at the terminal agrees, or baton.toml describes the queue
    #[arg(long)]
    pub(super) share_queue: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum HowToCatchUp {
    /// Nothing, but for the last one if it is at most 5 s late
    Skip,
    /// One message for all of them
    Once,
    /// A message for each
    All,
}

impl From<HowToCatchUp> for CatchUp {
    fn from(how: HowToCatchUp) -> Self {
        match how {
            HowToCatchUp::Skip => Self::Skip,
            HowToCatchUp::Once => Self::Once,
            HowToCatchUp::All => Self::All,
        }
    }
}

impl Feed {
    /// Whether the command names a source.
    pub(super) const fn is_named(&self) -> bool {
        self.source.is_some() || self.interval.is_some() || self.is_of_its_own()
    }

    /// Whether it is more than ticks.
    pub(super) const fn is_of_its_own(&self) -> bool {
        self.lines.is_some() || self.lines_from.is_some() || self.cron.is_some()
    }

    /// Ticks under this name, unless it has one.
    pub(super) fn tick_as(&mut self, name: &Name) {
        self.source.get_or_insert_with(|| name.clone());
    }

    /// Refuses flags about a source where there is none.
    pub(super) fn check(&self, until_done: bool) -> Result<(), Failure> {
        if self.json_lines && self.lines.is_none() && self.lines_from.is_none() {
            return Err(Failure::usage("--json-lines says how lines are read", "add --lines or --lines-from"));
        }
        let flag = if self.rewind { "--rewind" } else { "--count" };
        if !self.is_named() && (self.rewind || self.count.is_some()) {
            return Err(Failure::usage(
                format!("{flag} is for a source, and none is named"),
                "add --interval, --lines, --lines-from, --cron or --source",
            ));
        }
        if self.follow && self.reads_stdin() {
            return Err(Failure::usage("standard input ends when its writers close it", "leave --follow out"));
        }
        if self.follow && until_done && self.count.is_none() {
            return Err(Failure::usage(
                "--follow waits for more lines for ever, so --until-done would never end",
                "leave one of the two out, or add --count",
            ));
        }
        if until_done && self.count.is_none() && self.cron.as_deref().is_some_and(is_endless) {
            return Err(Failure::usage("this cron never ends, so --until-done would never end", "add --count"));
        }
        if until_done && self.is_named() && !self.is_of_its_own() && self.count.is_none() {
            return Err(Failure::usage("ticks never end, so --until-done would never end", "add --count"));
        }
        Ok(())
    }

    /// Whether the source starts over: on request, or because standard input is new in each run.
    pub(super) fn begins_anew(&self) -> bool {
        self.rewind || self.reads_stdin()
    }

    pub(super) fn reads_stdin(&self) -> bool {
        self.lines.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// The first flag that says something of a source, but for its name, if there is one.
    pub(super) const fn about_a_source(&self) -> Option<&'static str> {
        match self {
            Self { interval: Some(_), .. } => Some("--interval"),
            Self { lines: Some(_), .. } => Some("--lines"),
            Self { lines_from: Some(_), .. } => Some("--lines-from"),
            Self { cron: Some(_), .. } => Some("--cron"),
            Self { count: Some(_), .. } => Some("--count"),
            _ => None,
        }
    }

    /// Replaces settings of the description by the flags.
    pub(super) fn override_in(&self, feed: &mut SourceFeed) -> Result<(), Failure> {
        if self.interval.is_some() || self.is_of_its_own() {
            feed.pull = self.pull()?;
        }
        feed.count = self.count.or(feed.count);
        Ok(())
    }

    /// The source that the flags describe, if they name one.
    pub(super) fn described(&self, queue: &Name) -> Result<Option<SourceFeed>, Failure> {
        if !self.is_named() {
            return Ok(None);
        }
        let pull = self.pull()?;
        let name = self.source.clone().map_or_else(|| pull.name(queue), Ok)?;
        Ok(Some(SourceFeed { name, queue: queue.clone(), pull, count: self.count }))
    }

    fn pull(&self) -> Result<Pull, Failure> {
        let json = self.json_lines;
        Ok(match (&self.lines, &self.lines_from, &self.cron) {
            (Some(path), ..) if path.as_os_str() == "-" => Pull::Stdin { json },
            (Some(path), ..) => Pull::Lines { path: path.clone(), follow: self.follow, json },
            (_, Some(command), _) => Pull::LinesFrom { command: command.clone(), json },
            (.., Some(expression)) => {
                let catch_up = self.catch_up.map_or_else(CatchUp::default, CatchUp::from);
                calendar(expression, catch_up)
                    .map_err(|(cause, next)| Failure::usage(format!("--cron: {cause}"), next))?;
                Pull::Cron { expression: expression.clone(), catch_up }
            }
            _ => Pull::Ticks(self.interval),
        })
    }
}
