//! A log that takes up room while little is written: it is emptied.
//!
//! SQLite writes a log that was copied back from its front again and never makes it shorter, so the longest log of a busy
//! time would stay. A busy fleet is left alone: to let a log grow again costs more than to write over it. The log's head
//! changes whenever writing goes back to the front. A long log with the same head as a while ago is one of a quiet fleet,
//! whichever processes write to it.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    time::{Duration, Instant},
};

use super::{Site, file::OpenFile, location::sidecar};
use crate::store::StoreError;

/// How often the log is looked at, and for how long its head must have been the same.
const EACH: Duration = Duration::from_secs(2);
/// A log up to this length may stay.
const SHORT: u64 = 4 << 20;
/// The length of SQLite's header of a log.
const HEAD: usize = 32;

/// What was seen of the log.
pub(super) struct IdleLog {
    looked: Instant,
    /// The head of a long log.
    head: Option<[u8; HEAD]>,
}

impl IdleLog {
    pub(super) fn new() -> Self {
        Self { looked: Instant::now(), head: None }
    }

    /// Empties the log if it is long and the fleet is quiet; readers in the way put that off.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where the file system has no locks.
    pub(super) fn look(&mut self, file: &OpenFile, site: &Site) -> Result<(), StoreError> {
        if self.looked.elapsed() < EACH {
            return Ok(());
        }
        self.looked = Instant::now();
        // A log that cannot be read is not emptied either.
        let head = head_of_long(file.path()).ok().flatten();
        if head.is_some() && head == self.head {
            let _turn = file.turn()?;
            file.give_log_up(site);
        }
        self.head = head;
        Ok(())
    }
}

/// The head of the log of the store at `path`, if that log is long.
fn head_of_long(path: &Path) -> io::Result<Option<[u8; HEAD]>> {
    // SQLite has no locks on this file, which closing it here would drop.
    let mut log = File::open(sidecar(path, "-wal"))?;
    if log.metadata()?.len() <= SHORT {
        return Ok(None);
    }
    let mut head = [0; HEAD];
    log.read_exact(&mut head)?;
    Ok(Some(head))
}
