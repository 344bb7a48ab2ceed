//! Who hears what a node does: the log, the journal, and whoever waits for a source that fails.

use std::{io, path::Path, sync::Arc};

use baton::{Event, Name, Observer, admin::Journal, store::message::Range};
use bytes::Bytes;
use tokio::sync::watch;

use super::Log;
use crate::{
    exit::{Exit, Failure},
    output::remark,
};

/// Passes on what a node does.
pub(super) struct Witness {
    log: Arc<Log>,
    journal: Option<Journal>,
    /// That a source failed for good, once one has.
    failed: watch::Sender<Option<Event>>,
    /// Why the store takes nothing new, while it does not.
    waits: watch::Sender<Option<String>>,
}

impl Witness {
    pub(super) fn new(log: &Arc<Log>, journal: Option<&Path>) -> Result<Self, Failure> {
        let journal = journal.map(open_journal).transpose()?;
        Ok(Self { log: log.clone(), journal, failed: watch::Sender::new(None), waits: watch::Sender::new(None) })
    }

    /// Hears of a source that has failed for good.
    pub(super) fn failed(&self) -> watch::Receiver<Option<Event>> {
        self.failed.subscribe()
    }

    /// Hears why the store takes nothing new.
    pub(super) fn waits(&self) -> watch::Receiver<Option<String>> {
        self.waits.subscribe()
    }

    /// Writes down what is only noted so far.
    pub(super) fn flush(&self) {
        if let Some(journal) = &self.journal {
            journal.flush();
        }
    }
}

impl Observer for Witness {
    fn ran(&self, _: &Name, range: Range, first_body: &Bytes) {
        if let Some(journal) = &self.journal {
            journal.ran(range, first_body);
        }
    }

    fn settling(&self) {
        self.flush();
    }

    fn on_event(&self, event: &Event) {
        self.log.on_event(event);
        if let Some(journal) = &self.journal {
            journal.on_event(event);
        }
        match event {
            Event::StoreFull { .. } => drop(self.waits.send_replace(Some(event.to_string()))),
            Event::StoreTakes { .. } => drop(self.waits.send_replace(None)),
            _ => {}
        }
        if matches!(event, Event::SourceFailed { error, .. } if error.is_for_good()) {
            self.failed.send_replace(Some(event.clone()));
        }
    }
}

fn open_journal(path: &Path) -> Result<Journal, Failure> {
    let failed = |error: &io::Error| {
        remark(&format!("cannot write the journal: {error}; make room for it"));
        std::process::exit(Exit::Failed as i32);
    };
    Journal::open(path, failed).map_err(|error| {
        Failure::new(format!("cannot write the journal {}: {error}", path.display()), "name another file")
    })
}
