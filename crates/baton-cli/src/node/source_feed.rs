//! The source of a queue, from flags or from a file.

use std::{
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use baton::{
    Name, Node,
    builtin::{CatchUp, Cron, InvalidCron, Lines, ReadSoFar, Tick},
    settings::document::meant,
    store::message::Digest,
};

use crate::{exit::Failure, output::moment};

/// A source and the queue it feeds.
#[derive(Debug, Clone)]
pub(super) struct SourceFeed {
    pub(super) name: Name,
    pub(super) queue: Name,
    pub(super) pull: Pull,
    /// The number of messages after which it ends.
    pub(super) count: Option<u64>,
}

/// How a source goes on after its end, with the remark about it.
pub(super) enum AfterEnd {
    /// Not at all.
    Over(Option<String>),
    /// At its cursor.
    More(Option<String>),
}

/// Where messages come from.
#[derive(Debug, Clone)]
pub(super) enum Pull {
    /// One every so often.
    Ticks(Option<Duration>),
    /// The lines of a file, or of all that come to have its name.
    Lines { path: PathBuf, follow: bool, json: bool },
    /// The lines of standard input.
    Stdin { json: bool },
    /// The lines that a command prints.
    LinesFrom { command: String, json: bool },
    /// The due times of an expression.
    Cron { expression: String, catch_up: CatchUp },
}

/// Whether an expression of a cron names no years: the last of its seven fields.
pub(super) fn is_endless(expression: &str) -> bool {
    expression.split_whitespace().nth(6).is_none_or(|years| years == "*")
}

impl Pull {
    /// Whether it never ends by itself.
    pub(super) fn is_endless(&self) -> bool {
        match self {
            Self::Ticks(_) | Self::Lines { follow: true, .. } => true,
            Self::Cron { expression, .. } => is_endless(expression),
            Self::Lines { .. } | Self::Stdin { .. } | Self::LinesFrom { .. } => false,
        }
    }

    /// The name of a source that was given none.
    pub(super) fn name(&self, queue: &Name) -> Result<Name, Failure> {
        let derived = match self {
            Self::Ticks(_) => "ticks".to_owned(),
            Self::Lines { path, .. } => Lines::name_for(&canonical(path)?, queue),
            // Each run reads lines of its own: two runs at once are two sources.
            Self::Stdin { .. } => format!("stdin:{:08x}", fastrand::u32(..)),
            Self::LinesFrom { command, .. } => named_by("lines", command, queue),
            Self::Cron { expression, .. } => {
                named_by("cron", &expression.split_whitespace().collect::<Vec<_>>().join(" "), queue)
            }
        };
        Name::new(&derived).map_err(|error| Failure::usage(error.to_string(), "name it with --source"))
    }
}

impl SourceFeed {
    /// Makes the node offer the source.
    pub(super) fn offer(&self, node: Node) -> Result<Node, Failure> {
        let (name, queue, count) = (self.name.as_str(), self.queue.as_str(), self.count);
        Ok(match &self.pull {
            Pull::Ticks(interval) => {
                let tick = interval.map_or_else(Tick::default, Tick::every);
                node.source_into(queue, name, counted(tick, count, Tick::count))
            }
            Pull::Lines { path, follow, json } => {
                let lines = Lines::file(readable(path, *follow)?).follow(*follow).json(*json);
                node.source_into(queue, name, counted(lines, count, Lines::count))
            }
            Pull::Stdin { json } => {
                node.source_into(queue, name, counted(Lines::stdin().json(*json), count, Lines::count))
            }
            Pull::LinesFrom { command, json } => {
                node.source_into(queue, name, counted(Lines::command(command).json(*json), count, Lines::count))
            }
            Pull::Cron { expression, catch_up } => {
                let cron = calendar(expression, *catch_up)
                    .map_err(|(cause, next)| Failure::usage(format!("source {name}: {cause}"), next))?;
                node.source_into(queue, name, counted(cron, count, Cron::count))
            }
        })
    }

    /// Why it cannot be read here, if that is so.
    pub(super) fn unreadable(&self) -> Option<Failure> {
        match &self.pull {
            Pull::Lines { path, follow, .. } => readable(path, *follow).err(),
            _ => None,
        }
    }

    /// How a source that has ended at this cursor goes on. Only a file of lines can, when it has grown. While messages wait
    /// in its queue, they are run, and reading the file again would add to them.
    pub(super) async fn after_its_end(&self, cursor: &str, waiting: Option<u64>) -> AfterEnd {
        let Pull::Lines { path, follow: false, .. } = &self.pull else { return AfterEnd::Over(None) };
        let Ok(whole) = canonical(path) else { return AfterEnd::Over(None) };
        let name = path.display();
        let lines = counted(Lines::file(whole), self.count, Lines::count);
        match lines.read_so_far(cursor).await {
            Ok(Some(ReadSoFar { lines, has_more })) => {
                let (s, were) = if lines == 1 { ("", "was") } else { ("s", "were") };
                if has_more {
                    let next = lines + 1;
                    AfterEnd::More(Some(format!("{name}: {lines} line{s} {were} read before; goes on at line {next}")))
                } else {
                    let all = if self.count.is_some_and(|count| lines >= count) { "the first" } else { "all" };
                    let then = match waiting {
                        Some(1) => "1 message waits and is run now".to_owned(),
                        Some(waiting) => format!("{waiting} messages wait and are run now"),
                        None => {
                            "--rewind reads it again; another program over the same lines needs a --queue of its own"
                                .to_owned()
                        }
                    };
                    AfterEnd::Over(Some(format!("{all} {lines} line{s} of {name} {were} read before; {then}")))
                }
            }
            Ok(None) => AfterEnd::Over(None),
            // The source meets the same error and reports it as its failure.
            Err(_) => AfterEnd::More(None),
        }
    }

    /// When its calendar, if it has one, is next due from now on.
    pub(super) fn next_due(&self) -> Option<String> {
        let Pull::Cron { expression, catch_up } = &self.pull else { return None };
        let due = calendar(expression, *catch_up).ok()?.next_due(SystemTime::now());
        let due = due.and_then(|due| due.duration_since(UNIX_EPOCH).ok());
        let due = due.and_then(|due| u64::try_from(due.as_millis()).ok());
        let when = due.map_or_else(|| "never due again".to_owned(), |ms| format!("next due at {}", moment(ms)));
        Some(format!("'{expression}' is {when}"))
    }
}

/// How a cron expression is written.
const CRON_FORM: &str = "write minute hour day month weekday, as '*/5 * * * *'";

/// The names that expressions have.
const NAMED: [&str; 6] = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@annually"];

/// The calendar of an expression, or why it is none and what to do.
pub(super) fn calendar(expression: &str, catch_up: CatchUp) -> Result<Cron, (String, String)> {
    Cron::new(expression, catch_up).map_err(|error| match error {
        InvalidCron::Expression { expression, cause } => {
            let next = match meant(&expression, NAMED).filter(|_| expression.starts_with('@')) {
                Some(near) => format!("did you mean {near}?"),
                None if expression.starts_with('@') => format!("there are {}", NAMED.join(", ")),
                None => CRON_FORM.to_owned(),
            };
            (format!("{expression:?} is no cron expression: {cause}"), next)
        }
        other => (other.to_string(), CRON_FORM.to_owned()),
    })
}

fn counted<S>(source: S, count: Option<u64>, with: fn(S, u64) -> S) -> S {
    match count {
        Some(count) => with(source, count),
        None => source,
    }
}

/// The name of a source that was given none, by what it is and what it feeds: two expressions, commands or queues are
/// two sources.
fn named_by(kind: &str, what: &str, queue: &Name) -> String {
    let digest = Digest::of(what.as_bytes()).then(queue.as_str().as_bytes()).to_string();
    format!("{kind}:{}", digest.get(..8).unwrap_or_default())
}

/// The whole path. A source that cannot be read must not be offered: its node would take the baton for nothing.
fn readable(path: &Path, follow: bool) -> Result<PathBuf, Failure> {
    let path = canonical(path)?;
    let kind = std::fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.file_type();
    if kind.is_fifo() && follow {
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

/// The path by which the file is known wherever this is run from.
fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| match path.to_str() {
        // Only if it is no file after all: a shell may have put one there.
        Some(name) if name.starts_with("/dev/") || name.starts_with("/proc/") => Failure::new(
            format!("--lines {name} is neither a file nor a named pipe, which can be found again"),
            "take --lines - for standard input, or let --lines-from run the command that prints them",
        ),
        _ => unreadable(path, &error),
    })
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot read {}: {why}", path.display()), "name a file of lines, or a named pipe")
}
