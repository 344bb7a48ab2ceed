//! The log of a node: one line an event on standard error, around the panel if there is one.
//!
//! A line is a [`Record`] until it is written. Workers of `up` write theirs as JSON, and `up` writes them on in its own
//! form: so they are whole, carry the number of their worker, and are summed up together.

mod filter;
mod flood;
mod look;
mod record;

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use baton::{Event, Level, Name, admin::SupervisorEvent, pool::Spoken, store::StoreEvent};
use clap::ValueEnum;
use indicatif::ProgressBar;
use tokio::sync::watch;

use self::{
    filter::Filter,
    flood::Flood,
    look::Look,
    record::{OUTPUT, Record},
};
use crate::{
    exit::Failure,
    output::{colours, remark},
};

/// The variable that says which lines are written.
const VARIABLE: &str = "BATON_LOG";
/// How often it is looked whether lines were left out.
const SUM_UP_EVERY: Duration = Duration::from_secs(1);

/// What is logged, and in what form.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Log")]
pub(crate) struct LogArguments {
    /// Neither log nor figures, only what somebody has to know or do
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Log all: the routine of a healthy node too, long lines, full times, fleet and session. Without it the level is info,
    /// or what BATON_LOG says: off, error, warn, info or debug, and NAME=LEVEL for a queue or a source, as warn,resize=debug
    #[arg(short, long)]
    verbose: bool,
    /// The form of the log on standard error: lines of text, which are short on a terminal, or json, an object a line
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Json,
}

impl LogArguments {
    /// Whether figures are drawn on a terminal: JSON has them as lines.
    pub(crate) fn shows_panel(&self) -> bool {
        !self.quiet && self.log == Form::Text && io::stderr().is_terminal()
    }

    /// Whether --quiet is given.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The flags for a worker whose log goes through this process.
    pub(crate) fn of_worker(&self) -> Vec<&'static str> {
        let level = [(self.quiet, "--quiet"), (self.verbose, "--verbose")];
        let level = level.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        ["--log", "json"].into_iter().chain(level).collect()
    }

    fn filter(&self) -> Result<Filter, Failure> {
        if self.verbose {
            return Ok(Filter::least(Level::Debug));
        }
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        Filter::parse(&text.to_string_lossy()).map_err(|error| {
            let next = "write off, error, warn, info or debug, or NAME=LEVEL for a queue or a source";
            Failure::usage(format!("{VARIABLE}: {error}"), next)
        })
    }

    fn look(&self) -> Look {
        let colours = colours(&io::stderr());
        match self.log {
            Form::Json => Look::Json,
            Form::Text if self.verbose || !io::stderr().is_terminal() => Look::Full { colours },
            Form::Text => Look::Short { colours },
        }
    }
}

/// Where events go.
pub(crate) struct Log {
    fleet: Name,
    quiet: bool,
    look: Look,
    filter: Filter,
    flood: Flood,
    panel: Option<ProgressBar>,
    /// Whether another process says what concerns the store.
    beneath: bool,
    session: watch::Sender<Option<String>>,
}

impl Log {
    /// Starts a log. One `beneath` another process is a worker of `up`, which says itself what concerns the store.
    pub(crate) fn start(
        fleet: Name, arguments: &LogArguments, panel: Option<ProgressBar>, beneath: bool,
    ) -> Result<Arc<Self>, Failure> {
        let log = Arc::new(Self {
            fleet,
            quiet: arguments.quiet,
            look: arguments.look(),
            filter: arguments.filter()?,
            flood: Flood::default(),
            panel,
            beneath,
            session: watch::Sender::default(),
        });
        let weak = Arc::downgrade(&log);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SUM_UP_EVERY).await;
                let Some(log) = weak.upgrade() else { return };
                log.sum_up(false);
            }
        });
        Ok(log)
    }

    /// An event of the node.
    pub(super) fn on_event(&self, event: &Event) {
        let (queue, source) = match event {
            Event::Pushed { queue, source, .. } | Event::PushRefused { queue, source, .. } => {
                (Some(queue.as_str()), Some(source.as_str()))
            }
            _ => (None, None),
        };
        // Most of these are filtered out: no text is made of them.
        if event.is_routine() && queue.is_some() && !self.filter.admits(event.level(), queue, source) {
            return;
        }
        match event {
            Event::Store(
                StoreEvent::KeepsNothing { .. } | StoreEvent::MayEvict { .. } | StoreEvent::EvictsNoMore { .. },
            )
            | Event::StoreRenewed { .. }
                if self.beneath => {}
            // Messages may be lost: that is shown also with --quiet.
            Event::Store(StoreEvent::MayEvict { .. } | StoreEvent::EvictsNoMore { .. }) => {
                self.insist(Record::of(event))
            }
            event => self.record(Record::of(event)),
        }
        if let Event::Joined { session, .. } = event {
            // First written, then known: who waits for it speaks after it.
            self.session.send_replace(Some(session.to_string()));
        }
    }

    /// Waits until the node has joined for the first time, and has said so.
    pub(super) async fn joined(&self) {
        self.session.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Whether --quiet is given.
    pub(super) const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A remark of this process.
    pub(crate) fn line(&self, text: &str) {
        self.record(Record::new(Level::Info, text));
    }

    /// A remark that is shown also with --quiet.
    pub(crate) fn say(&self, text: &str) {
        self.insist(Record::new(Level::Warn, text));
    }

    /// A line of a program that runs messages of this queue, or a hint about it.
    pub(super) fn spoken(&self, queue: &Name, spoken: &Spoken<'_>) {
        let (queue, id, child) = (Some(queue.to_string()), spoken.message.map(|id| id.0), spoken.child);
        if spoken.is_hint {
            self.record(Record { queue, id, ..Record::new(Level::Warn, spoken.text) });
        } else {
            let child = child.filter(|_| id.is_none());
            let event = Some(OUTPUT.to_owned());
            self.record(Record { event, queue, id, child, ..Record::new(Level::Info, spoken.text) });
        }
    }

    /// What happens to workers; what they write themselves is written on.
    pub(crate) fn supervised(&self, event: &SupervisorEvent) {
        let SupervisorEvent::Line { worker, line } = event else {
            let name = Some(event.name().to_owned());
            return self.record(Record { event: name, ..Record::new(event.level(), &event.to_string()) });
        };
        let record = serde_json::from_str::<Record>(line).unwrap_or_else(|_| match line.strip_prefix("baton: ") {
            // A remark of the program itself, from before its log began.
            Some(remark) => Record::new(Level::Warn, remark),
            None => Record { event: Some(OUTPUT.to_owned()), ..Record::new(Level::Warn, line) },
        });
        self.record(Record { worker: Some(*worker), ..record });
    }

    /// Writes what was left out and not summed up yet, at the end.
    pub(crate) fn close(&self) {
        self.sum_up(true);
    }

    fn sum_up(&self, all: bool) {
        self.flood.sums(Instant::now(), all).into_iter().for_each(|sum| self.write(sum));
    }

    fn admits(&self, record: &Record) -> bool {
        !self.quiet && self.filter.admits(record.level, record.queue.as_deref(), record.source.as_deref())
    }

    fn record(&self, record: Record) {
        if self.admits(&record) && self.flood.admits(&record, Instant::now()) {
            self.write(record);
        }
    }

    /// Writes it also with --quiet.
    fn insist(&self, record: Record) {
        if self.admits(&record) {
            self.write(record);
        } else {
            remark(&Look::text(&record));
        }
    }

    fn write(&self, record: Record) {
        let session = || self.session.borrow().clone();
        let session = record.session.clone().or_else(|| if record.worker.is_none() { session() } else { None });
        let line = self.look.line(&Record { fleet: Some(self.fleet.to_string()), session, ..record }, now_ms());
        self.put(&line);
    }

    fn put(&self, line: &str) {
        match self.panel.as_ref().filter(|panel| !panel.is_hidden()) {
            Some(panel) => panel.println(line),
            // In one write: other processes may write to the same file. A log that cannot be written is not worth
            // stopping for.
            None => drop(io::stderr().lock().write_all(format!("{line}\n").as_bytes())),
        }
    }

    /// Whether lines are the short ones of a terminal.
    pub(crate) const fn is_short(&self) -> bool {
        matches!(self.look, Look::Short { .. })
    }

    /// Writes a text without a time of day, unless --quiet is given.
    pub(crate) fn heading(&self, text: &str) {
        if !self.quiet {
            self.put(text);
        }
    }

    /// Does what writes to the terminal by itself, while the panel is not drawn.
    pub(super) fn beside_the_panel<T>(&self, write: impl FnOnce() -> T) -> T {
        match self.panel.as_ref().filter(|panel| !panel.is_hidden()) {
            Some(panel) => panel.suspend(write),
            None => write(),
        }
    }

    /// Prints what a program answered, whole and ended by a line end, on standard output. Nothing stays nothing.
    pub(super) fn print(&self, output: &[u8]) -> io::Result<()> {
        let end: &[u8] = if output.last().is_some_and(|byte| *byte != b'\n') { b"\n" } else { b"" };
        let print = || {
            let mut stdout = io::stdout().lock();
            stdout.write_all(output).and_then(|()| stdout.write_all(end)).and_then(|()| stdout.flush())
        };
        // Where the output goes elsewhere, the panel is not in its way, and need not be drawn again for each of thousands.
        match self.panel.as_ref().filter(|panel| !panel.is_hidden() && io::stdout().is_terminal()) {
            Some(panel) => panel.suspend(print),
            None => print(),
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
