//! What feeds a queue: ticks, lines or a calendar; nothing unless the command names it.

use std::{
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use baton::{
    Name, Node,
    jobs::{CatchUp, Cron, InvalidCron, Lines, Tick},
    settings::quantity,
    store::message::Digest,
};
use clap::ValueEnum;

use crate::{exit::Failure, output::moment};

/// What the source is: none unless one of the first five flags is given; ticks unless lines or a calendar are named.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Source")]
pub(super) struct Feed {
    /// The source's name; all nodes that offer it must mean the same [default: ticks (demo if
    /// nothing is named), cron:HASH of the expression, lines, or lines:FILE:HASH of the path]
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<Name>,
    /// A message every so often; 0 is as fast as the store takes them [default of ticks: 500ms]
    #[arg(long, value_name = "TIME", value_parser = quantity::time, conflicts_with_all = ["lines", "lines_from", "cron"])]
    interval: Option<Duration>,
    /// A message for each line of this file, read to its end as it is then: a last line without a line end counts, and
    /// what is added later does not. A successor goes on at the line reached.
    ///
    /// A named pipe (FIFO) is read until its last writer closes it. What was read from it cannot be read again, so a
    /// successor does not go on: the source fails for good and says what was pushed; --rewind reads what comes next.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["lines_from", "cron"])]
    lines: Option<PathBuf>,
    /// At the end of the file wait for more lines, as `tail -F` does: only finished lines are taken, and every file that
    /// takes its name (log rotation) is read from its start, a second after it did. Not seen: one that has the name for
    /// under 25 ms, and what was rotated away while no node read
    #[arg(long, requires = "lines")]
    follow: bool,
    /// A message for each line this command prints; a successor runs it again and skips what was sent. If the command
    /// fails, so does the source, for good
    #[arg(long, value_name = "COMMAND", conflicts_with = "cron")]
    lines_from: Option<String>,
    /// Lines are JSON values, not text
    #[arg(long, conflicts_with_all = ["cron", "interval"])]
    json_lines: bool,
    /// A message at each due time of this expression, in UTC: `minute hour day month weekday`, with an optional field
    /// for seconds before them and one for years behind those; or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// What to send for due times that were missed [default: skip]
    #[arg(long, value_enum, value_name = "HOW", requires = "cron")]
    catch_up: Option<HowToCatchUp>,
    /// End the source behind so many messages, counted over the whole fleet
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Start the source over; nobody may be running it
    #[arg(long)]
    pub(super) rewind: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HowToCatchUp {
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

    /// Refuses what says something of a source that is not there.
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
        if self.follow && until_done && self.count.is_none() {
            return Err(Failure::usage(
                "--follow waits for more lines for ever, so --until-done would not come",
                "leave one of the two out, or add --count",
            ));
        }
        Ok(())
    }

    /// The source's name, if one is named.
    pub(super) fn name(&self) -> Result<Option<Name>, Failure> {
        if !self.is_named() || self.source.is_some() {
            return Ok(self.source.clone());
        }
        let derived = match (&self.lines, &self.lines_from, &self.cron) {
            (Some(path), ..) => Lines::name_for(&canonical(path)?),
            (_, Some(_), _) => "lines".to_owned(),
            (.., Some(expression)) => cron_name(expression),
            _ => "ticks".to_owned(),
        };
        let name = Name::new(&derived).map_err(|error| Failure::usage(error.to_string(), "name it with --source"))?;
        Ok(Some(name))
    }

    /// Makes the node offer the source, if one is named.
    pub(super) fn offer(&self, node: Node, queue: &Name) -> Result<Node, Failure> {
        let Some(name) = self.name()? else { return Ok(node) };
        let (name, queue) = (name.as_str(), queue.as_str());
        if let Some(cron) = self.calendar()? {
            return Ok(node.source_into(queue, name, counted(cron, self.count, Cron::count)));
        }
        let lines = match (&self.lines, &self.lines_from) {
            (Some(path), _) => Some(Lines::file(self.readable(path)?).follow(self.follow)),
            (_, Some(command)) => Some(Lines::command(command)),
            _ => None,
        };
        if let Some(lines) = lines.map(|lines| lines.json(self.json_lines)) {
            return Ok(node.source_into(queue, name, counted(lines, self.count, Lines::count)));
        }
        let tick = self.interval.map_or_else(Tick::default, Tick::every);
        Ok(node.source_into(queue, name, counted(tick, self.count, Tick::count)))
    }

    /// The calendar, if one is named.
    fn calendar(&self) -> Result<Option<Cron>, Failure> {
        let how = self.catch_up.map_or_else(CatchUp::default, CatchUp::from);
        let cron = self.cron.as_ref().map(|expression| Cron::new(expression, how)).transpose();
        cron.map_err(|error| {
            let cause = match error {
                InvalidCron::Expression { expression, cause } => {
                    format!("{expression:?} is no cron expression: {cause}")
                }
                other => other.to_string(),
            };
            Failure::usage(format!("--cron: {cause}"), "write minute hour day month weekday, as '*/5 * * * *'")
        })
    }

    /// When the calendar, if one is named, is next due from now on.
    pub(super) fn next_due(&self) -> Result<Option<String>, Failure> {
        let Some(cron) = self.calendar()? else { return Ok(None) };
        let due = cron.next_due(SystemTime::now()).and_then(|due| due.duration_since(UNIX_EPOCH).ok());
        let due = due.and_then(|due| u64::try_from(due.as_millis()).ok());
        let when = due.map_or_else(|| "never due again".to_owned(), |ms| format!("next due at {}", moment(ms)));
        Ok(Some(format!("'{}' is {when}", self.cron.as_deref().unwrap_or_default())))
    }

    /// The whole path. A source that cannot be read must not be offered: its node would take the baton for nothing.
    fn readable(&self, path: &Path) -> Result<PathBuf, Failure> {
        let path = canonical(path)?;
        let kind = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.file_type();
        if kind.is_fifo() && self.follow {
            return Err(Failure::usage(
                format!("{} is a pipe, which ends when its writers close it", path.display()),
                "leave --follow out",
            ));
        }
        // Opening a pipe would wait for its writer.
        if kind.is_file() {
            std::fs::File::open(&path).map_err(|error| unreadable(&path, &error))?;
        } else if !kind.is_fifo() {
            return Err(unreadable(&path, &"it is neither a file nor a named pipe"));
        }
        Ok(path)
    }
}

fn counted<S>(source: S, count: Option<u64>, with: fn(S, u64) -> S) -> S {
    match count {
        Some(count) => with(source, count),
        None => source,
    }
}

/// The name of a calendar that was given none: two expressions are two sources.
fn cron_name(expression: &str) -> String {
    let words: Vec<&str> = expression.split_whitespace().collect();
    let digest = Digest::of(words.join(" ").as_bytes()).to_string();
    format!("cron:{}", digest.get(..8).unwrap_or_default())
}

/// The path by which the file is known wherever this is run from.
fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| match path.to_str() {
        // Only if it is no file after all: a shell may have put one there.
        Some(name) if name == "-" || name.starts_with("/dev/") || name.starts_with("/proc/") => Failure::new(
            format!("--lines {name} is neither a file nor a named pipe, which can be found again"),
            "pipe the lines into `baton push -`, or let --lines-from run the command that prints them",
        ),
        _ => unreadable(path, &error),
    })
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot read {}: {why}", path.display()), "name a file of lines, or a named pipe")
}
