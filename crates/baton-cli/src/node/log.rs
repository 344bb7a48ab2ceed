//! The log of a node: one line an event on standard error, around the panel if there is one.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::{Event, Name, store::StoreEvent};
use indicatif::ProgressBar;
use tokio::sync::watch;

use crate::output::{cut, moment, remark, tame};

/// The most bytes of an event in a line of the log: an error may quote a whole body.
const LONGEST: usize = 4 << 10;

/// Where events are told.
pub(crate) struct Log {
    fleet: Name,
    quiet: bool,
    panel: Option<ProgressBar>,
    /// Whether what concerns the store is said by another process.
    beneath: bool,
    session: watch::Sender<Option<String>>,
}

impl Log {
    pub(crate) fn new(fleet: Name, quiet: bool, panel: Option<ProgressBar>) -> Self {
        Self { fleet, quiet, panel, beneath: false, session: watch::Sender::default() }
    }

    /// The same for a worker of `up`, if it is one: what that says of the store is not said once more.
    pub(crate) fn beneath(self, beneath: bool) -> Self {
        Self { beneath, ..self }
    }

    /// What a node says of itself, but for what healthy ones have to say all the time.
    pub(super) fn told(&self, event: &Event) {
        match event {
            Event::Joined { session, host, pid } => {
                let session = session.to_string();
                // First told, then known: whoever waits for it speaks after it.
                self.tell(&format!("joined as {host}/{pid}"), Some(&session));
                self.session.send_replace(Some(session));
            }
            event if event.is_routine() => {}
            Event::Store(
                StoreEvent::KeepsNothing { .. } | StoreEvent::MayEvict { .. } | StoreEvent::EvictsNoMore { .. },
            )
            | Event::StoreRenewed { .. }
                if self.beneath => {}
            // Messages may be lost: that is heard also where nobody wants a log.
            Event::Store(StoreEvent::MayEvict { .. } | StoreEvent::EvictsNoMore { .. }) => self.say(&event.to_string()),
            event => self.line(&event.to_string()),
        }
    }

    /// Waits until the node has joined for the first time, and has said so.
    pub(super) async fn joined(&self) {
        self.session.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Whether nobody wants a log.
    pub(super) const fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// An event of this process.
    pub(crate) fn line(&self, event: &str) {
        self.tell(event, self.session.borrow().as_deref());
    }

    /// An event that is to be heard also where nobody wants a log.
    pub(crate) fn say(&self, event: &str) {
        if self.quiet { remark(&cut(event, LONGEST)) } else { self.line(event) }
    }

    fn tell(&self, event: &str, session: Option<&str>) {
        let session = session.map(|id| format!(" session={id}")).unwrap_or_default();
        self.raw(&format!("{} {} fleet={}{session}", moment(now_ms()), tame(&cut(event, LONGEST)), self.fleet));
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
        // Where the output goes elsewhere, the panel is not in its way, and need not be drawn anew for each of thousands.
        match self.panel.as_ref().filter(|panel| !panel.is_hidden() && io::stdout().is_terminal()) {
            Some(panel) => panel.suspend(print),
            None => print(),
        }
    }

    /// A line that is a log line already.
    pub(crate) fn raw(&self, line: &str) {
        if self.quiet {
            return;
        }
        match self.panel.as_ref().filter(|panel| !panel.is_hidden()) {
            Some(panel) => panel.println(line),
            // A log that cannot be written is not worth stopping for.
            None => drop(writeln!(io::stderr().lock(), "{line}")),
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
