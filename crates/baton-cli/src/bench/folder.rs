//! A temporary folder that is gone when it is dropped.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use crate::exit::Failure;

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
        // A folder that cannot be removed is the system's to clear away.
        std::fs::remove_dir_all(&self.0).ok();
    }
}
