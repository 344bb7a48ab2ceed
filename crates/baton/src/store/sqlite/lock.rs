//! Whose turn it is to write: advisory locks on two files beside the store.
//!
//! SQLite alone keeps the data right, but its writers poll for their turn, and one that writes without a pause
//! starves the others. Here a writer first takes the gate, then the turn, then lets go of the gate. Whoever has just
//! written finds the gate taken by one who waits, and comes after it. The kernel frees both locks of a process that
//! dies; one that is stopped keeps its turn, and the others wait for it.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind},
    path::Path,
};

use super::file::sidecar;
use crate::store::StoreError;

/// The two files, open.
#[derive(Debug)]
pub(super) struct Turnstile {
    gate: File,
    turn: File,
}

/// The right to write, until dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a File);

impl Turnstile {
    /// Opens the lock files of the store at `path`, and makes them if they are missing.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] if the folder cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let open = |suffix| {
            let path = sidecar(path, suffix);
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(|error| {
                let path = path.display();
                StoreError::Unfit(format!("{path} cannot be opened ({error}): check the permissions of its folder"))
            })
        };
        Ok(Self { gate: open("-gate")?, turn: open("-lock")? })
    }

    /// Waits for the turn, as long as it takes.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where the file system has no locks.
    pub(super) fn enter(&self) -> Result<Turn<'_>, StoreError> {
        let unfit = |error: io::Error| StoreError::Unfit(format!("the store's file system has no file locks: {error}"));
        take(&self.gate).map_err(unfit)?;
        let turn = take(&self.turn);
        let gate = self.gate.unlock();
        turn.map_err(unfit)?;
        let turn = Turn(&self.turn);
        gate.map_err(unfit)?;
        Ok(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Unlocking an open file cannot fail in a way that leaves it locked.
        self.0.unlock().ok();
    }
}

fn take(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
