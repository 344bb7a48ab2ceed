//! A temporary folder that is gone when it is dropped.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::exit::Failure;

/// How often its removal is tried, and the pause after each.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder only this user may look into.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn make() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("baton-bench-{:016x}", fastrand::u64(..)));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            Failure::new(format!("cannot make the folder {}: {error}", path.display()), "name another with TMPDIR")
        })?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A thread or a child that is just ending may still put a file there. What cannot be removed even then is the
        // system's to clear away.
        for _ in 0..ATTEMPTS {
            if std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}
