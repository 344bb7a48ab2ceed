//! A file that is not there: it never was, or it is gone.
//!
//! **Invariant.** A store is made only where nothing speaks of a former one: no log that was not ended in order, and
//! nobody who had the store open and waits for it. The file comes before its log and before whoever uses it, so that
//! one of these without the file is never a store that is only now being made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    SqliteStore,
    location::{is_missing, real_path, sidecar},
    note::{FileId, Note},
    wake,
};
use crate::store::StoreError;

impl SqliteStore {
    /// Why there is no store at `path`, if there is none; what cannot be told, the first call finds out.
    #[must_use]
    pub fn absence(path: &Path) -> Option<StoreError> {
        is_missing(&real_path(path)).is_ok_and(|missing| missing).then(|| of(path))
    }
}

/// Why there is nothing to open at `path`.
pub(super) fn of(path: &Path) -> StoreError {
    let never = || format!("no store at {} yet: start a node, or give another path", path.display());
    remains(&real_path(path)).map_or_else(|| StoreError::Unreachable(never()), StoreError::Unfit)
}

/// What keeps a store from being made at `path`, and what to do about it.
pub(super) fn remains(path: &Path) -> Option<String> {
    let log = log_of(path);
    let awaited = log.is_none() && wake::is_listened_to(path);
    // Looked at last: another process may have made it meanwhile, and what was found is that one's.
    if (log.is_none() && !awaited) || !is_missing(path).is_ok_and(|missing| missing) {
        return None;
    }
    let how = if fs::symlink_metadata(path).is_ok() { "is empty" } else { "is gone" };
    let path = path.display();
    Some(match log {
        Some(log) => {
            let log = log.display();
            format!(
                "{path} {how}, but its log {log} is still here: bring the file back, or remove the log to begin again"
            )
        }
        None => format!("{path} {how} while running processes wait for it: bring it back, or stop them"),
    })
}

/// The log of a file that was not closed in order: one with content, or that the note beside it still speaks of.
fn log_of(path: &Path) -> Option<PathBuf> {
    let log = sidecar(path, "-wal");
    let noted = || FileId::of(&log).is_some_and(|id| Note::read(path).is_some_and(|note| note.log == Some(id)));
    let filled = |log: &Path| fs::metadata(log).is_ok_and(|log| log.len() > 0);
    if filled(&log) || noted() {
        return Some(log);
    }
    Some(sidecar(path, "-journal")).filter(|journal| filled(journal))
}
