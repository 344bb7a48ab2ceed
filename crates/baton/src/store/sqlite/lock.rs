//! Whose turn it is to write: advisory locks on two files beside the store.
//!
//! SQLite alone keeps the data right, but its writers poll for their turn, and one that writes without a pause
//! starves the others. Here a writer sleeps in the kernel until the turn is free, and while it sleeps it shows so by
//! a shared lock on the gate. One that has just had its turn looks at the gate, and if somebody waits, it steps back
//! for a moment. The kernel frees the locks of a process that dies. One that is stopped inside a transaction keeps
//! its turn, and the others wait for it; one that is stopped while it waits costs the others that moment, no more.

use std::{
    cell::Cell,
    fs::{File, OpenOptions},
    io::{self, ErrorKind},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::location::{private, sidecar};
use crate::store::StoreError;

/// How long one steps back: enough for a sleeper to wake and take its turn.
const COURTESY: Duration = Duration::from_micros(300);

/// The two files, open.
#[derive(Debug)]
pub(super) struct Turnstile {
    turn: File,
    gate: File,
    /// When this writer last gave its turn back.
    left: Cell<Option<Instant>>,
}

/// The right to write, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turnstile);

impl Turnstile {
    /// Opens the lock files of the store at `path`, and makes them if they are missing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] if the folder cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let open = |suffix| {
            let path = sidecar(path, suffix);
            private(OpenOptions::new().create(true).truncate(false).write(true)).open(&path).map_err(|error| {
                let path = path.display();
                StoreError::Unfit(format!("{path} cannot be opened ({error}): check the permissions of its folder"))
            })
        };
        Ok(Self { turn: open("-lock")?, gate: open("-gate")?, left: Cell::new(None) })
    }

    /// Waits for the turn, as long as it takes.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where the file system has no locks.
    pub(super) fn enter(&self) -> Result<Turn<'_>, StoreError> {
        self.step_back();
        // A busy file is one to sleep for; any other failure shows again there.
        if self.turn.try_lock().is_ok() {
            return Ok(Turn(self));
        }
        // Never blocks: whoever looks at the gate at this instant merely misses one who waits.
        let shown = self.gate.try_lock_shared().is_ok();
        let taken = sleep_for(&self.turn);
        if shown {
            self.gate.unlock().ok();
        }
        taken.map_err(|error| StoreError::Unfit(format!("the store's file system has no file locks: {error}")))?;
        Ok(Turn(self))
    }

    /// Lets one who waits go first.
    fn step_back(&self) {
        let rest = self.left.get().and_then(|left| COURTESY.checked_sub(left.elapsed()));
        let Some(rest) = rest else { return };
        if self.gate.try_lock().is_ok() {
            // Nobody waits. Unlocking an open file cannot fail in a way that leaves it locked.
            self.gate.unlock().ok();
        } else {
            thread::sleep(rest);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turn.unlock().ok();
        self.0.left.set(Some(Instant::now()));
    }
}

fn sleep_for(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
