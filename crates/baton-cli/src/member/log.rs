//! The log of a member: one line an event on standard error, around the panel if there is one.

use std::{
    io::{self, Write as _},
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use baton::message::Name;
use indicatif::ProgressBar;

use crate::output::{moment, tame};

/// Where events are told.
pub(crate) struct Log {
    fleet: Name,
    quiet: bool,
    panel: Option<ProgressBar>,
    session: Mutex<Option<String>>,
}

impl Log {
    pub(crate) fn new(fleet: Name, quiet: bool, panel: Option<ProgressBar>) -> Self {
        Self { fleet, quiet, panel, session: Mutex::default() }
    }

    /// What a node says of itself.
    pub(super) fn told(&self, line: &str) {
        match line.strip_prefix("joined as session ") {
            Some(session) => {
                *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.to_owned());
                self.line("joined");
            }
            None => self.line(line),
        }
    }

    /// An event of this process.
    pub(crate) fn line(&self, event: &str) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_ref().map(|id| format!(" session={id}")).unwrap_or_default();
        self.raw(&format!("{} {} fleet={}{session}", moment(now_ms()), tame(event), self.fleet));
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
