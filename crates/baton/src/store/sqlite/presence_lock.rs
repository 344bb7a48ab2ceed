//! Who has the store open: every connection holds a shared lock on a file beside it, the door.
//!
//! Whoever gets that lock for itself alone knows that no other connection of Baton, of this process or another, uses
//! the file or its log: only then may a log be judged, put aside or ended. The kernel frees the lock of a process
//! that dies. One that is stopped keeps it: it may go on at any moment with what it had open.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind},
    path::Path,
};

use super::location::{private, sidecar};

/// The door, open; in one's hands while its lock is held.
#[derive(Debug)]
pub(super) struct PresenceLock(File);

impl PresenceLock {
    /// The door of the store at `path`, made if it is missing; none if it is missing and cannot be made, for then
    /// nobody who writes is inside.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        let made = private(OpenOptions::new().create(true).truncate(false).write(true)).open(sidecar(path, "-door"));
        match made {
            Ok(file) => Ok(Some(Self(file))),
            Err(error) if may_not(&error) => Self::existing(path),
            Err(error) => Err(error),
        }
    }

    /// The door of the store at `path`, if it is there and may be opened: a lock needs no right to write.
    pub(super) fn existing(path: &Path) -> io::Result<Option<Self>> {
        match File::open(sidecar(path, "-door")) {
            Ok(file) => Ok(Some(Self(file))),
            Err(error) if error.kind() == ErrorKind::NotFound || may_not(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether one is alone, and stays so until [`PresenceLock::share`] or the end.
    pub(super) fn is_alone(&self) -> bool {
        self.0.try_lock().is_ok()
    }

    /// Goes out again.
    pub(super) fn release(&self) -> io::Result<()> {
        self.0.unlock()
    }

    /// Lets others in beside oneself; waits for one who is alone.
    pub(super) fn share(&self) -> io::Result<()> {
        // What is held alone is given up first, else it could not be shared.
        self.0.unlock()?;
        loop {
            match self.0.lock_shared() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

/// Whether a right is missing, or the file system can only be read.
pub(super) fn may_not(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}
