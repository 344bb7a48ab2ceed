//! A temporary folder that is gone when it is dropped.

use std::{path::Path, time::Duration};

use tempfile::TempDir;

use crate::failure::Failure;

/// How often its removal is tried, and the pause after each.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder only this user may look into.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn make() -> Result<Self, Failure> {
        let made = tempfile::Builder::new().prefix("baton-bench-").tempdir();
        made.map(Self).map_err(|error| {
            Failure::new(format!("cannot make a temporary folder: {error}"), "name another place with TMPDIR")
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A thread or a child that is just ending may still put a file there. What cannot be removed even then is the
        // system's to clear away.
        for _ in 0..ATTEMPTS {
            if std::fs::remove_dir_all(self.path()).is_ok() || !self.path().exists() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
