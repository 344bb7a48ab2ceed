//! What feeds a queue: ticks, lines or a calendar.

use std::{path::PathBuf, time::Duration};

use baton::{
    Node,
    jobs::{CatchUp, Cron, Lines, Tick},
    message::Name,
};
use clap::ValueEnum;

use crate::{exit::Failure, quantity};

/// What the source is; ticks unless lines or a calendar are named.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Source")]
pub(super) struct Feed {
    /// The source's name; all members that offer it must mean the same [default: ticks, lines or cron]
    #[arg(long, value_name = "NAME")]
    source: Option<Name>,
    /// A message every so often; 0 is as fast as the store takes them [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = quantity::time, conflicts_with_all = ["lines", "lines_from", "cron"])]
    interval: Option<Duration>,
    /// A message for each line of this file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["lines_from", "cron"])]
    lines: Option<PathBuf>,
    /// A message for each line this command prints; a successor runs it again and skips what was sent
    #[arg(long, value_name = "COMMAND", conflicts_with = "cron")]
    lines_from: Option<String>,
    /// Lines are JSON values, not text
    #[arg(long, conflicts_with_all = ["cron", "interval"])]
    json_lines: bool,
    /// A message at each due time of this expression, in UTC: `minute hour day month weekday`
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// What to send for due times that were missed
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
    /// Nothing
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
    /// The source's name.
    pub(super) fn name(&self) -> Result<Name, Failure> {
        let derived = match (&self.lines, &self.lines_from, &self.cron) {
            (None, None, None) => "ticks",
            (.., Some(_)) => "cron",
            _ => "lines",
        };
        match &self.source {
            Some(name) => Ok(name.clone()),
            None => Name::new(derived).map_err(|error| Failure::usage(error.to_string(), "name it with --source")),
        }
    }

    /// Makes the node offer the source.
    pub(super) fn offer(&self, node: Node, queue: &Name) -> Result<Node, Failure> {
        let (name, queue) = (self.name()?, queue.as_str());
        let name = name.as_str();
        if let Some(expression) = &self.cron {
            let cron = Cron::new(expression, self.catch_up.map_or_else(CatchUp::default, CatchUp::from))
                .map_err(|error| Failure::usage(format!("--cron: {error}"), "write it as '*/5 * * * *'"))?;
            return Ok(node.source_into(
                queue,
                name,
                self.count.map_or_else(|| cron.clone(), |n| cron.clone().count(n)),
            ));
        }
        let lines = match (&self.lines, &self.lines_from) {
            (Some(path), _) => {
                readable(path)?;
                Some(Lines::file(path))
            }
            (_, Some(command)) => Some(Lines::command(command)),
            _ => None,
        };
        if lines.is_none() && self.json_lines {
            return Err(Failure::usage("--json-lines says how lines are read", "add --lines or --lines-from"));
        }
        if let Some(lines) = lines.map(|lines| lines.json(self.json_lines)) {
            let lines = match self.count {
                Some(count) => lines.count(count),
                None => lines,
            };
            return Ok(node.source_into(queue, name, lines));
        }
        let tick = self.interval.map_or_else(Tick::default, Tick::every);
        let tick = match self.count {
            Some(count) => tick.count(count),
            None => tick,
        };
        Ok(node.source_into(queue, name, tick))
    }
}

/// A source that cannot be read must not be offered: its node would take the baton for nothing.
fn readable(path: &std::path::Path) -> Result<(), Failure> {
    let cannot = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()), "name a file of lines");
    let file = std::fs::File::open(path).map_err(|error| cannot(error.to_string()))?;
    let kind = file.metadata().map_err(|error| cannot(error.to_string()))?;
    if kind.is_dir() { Err(cannot("it is a folder".to_owned())) } else { Ok(()) }
}
