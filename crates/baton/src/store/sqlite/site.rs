//! Where a store is, whose it is, and what its threads know of it together.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{absence, held_log::HeldLog, note::FileId, stall::Stall};
use crate::{
    message::Name,
    store::{Clock, Ear, StoreError, StoreEvent, event},
};

/// Shared by the threads of one store.
pub(super) struct Site {
    pub(super) path: PathBuf,
    pub(super) fleet: Name,
    pub(super) clock: Clock,
    /// Who waits for the turn to write, and for how long.
    pub(super) stall: Stall,
    /// Who keeps the log from being emptied.
    pub(super) held_log: HeldLog,
    create: bool,
    /// Set once any thread has had the file open: from then on none is made.
    was_open: AtomicBool,
    /// The file last opened.
    known: Mutex<Option<FileId>>,
    ear: Mutex<Option<Ear>>,
}

impl Site {
    pub(super) fn new(path: PathBuf, fleet: Name, clock: Clock, create: bool) -> Self {
        let (was_open, known, ear) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
        let (stall, held_log) = (Stall::default(), HeldLog::default());
        Self { path, fleet, clock, stall, held_log, create, was_open, known, ear }
    }

    /// Whether a missing file may be made: never by a process that has had one.
    pub(super) fn may_create(&self) -> bool {
        self.create && !self.was_open.load(Ordering::Relaxed)
    }

    /// Whether a file was open before.
    pub(super) fn was_open(&self) -> bool {
        self.was_open.load(Ordering::Relaxed)
    }

    /// Notes which file was opened, and tells if it is another than before.
    pub(super) fn opened(&self, path: &Path, file: Option<FileId>) {
        self.was_open.store(true, Ordering::Relaxed);
        // One that was moved away since is no other: whoever looks next finds it gone.
        let Some(file) = file else { return };
        let former = self.known.lock().unwrap_or_else(PoisonError::into_inner).replace(file);
        if former.is_some_and(|former| former != file) {
            self.tell(&StoreEvent::Replaced { path: path.to_owned() });
        }
    }

    /// Notes that the file was replaced from here: whoever opens it next finds what it expects.
    pub(super) fn forget_file(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why there is nothing to open.
    pub(super) fn not_there(&self, path: &Path) -> StoreError {
        if !self.was_open() {
            return absence::of(path);
        }
        let path = path.display();
        StoreError::Unreachable(format!("the store's file {path} is gone: bring it back; none is made in its place"))
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, event: &StoreEvent) {
        let ear = self.ear.lock().unwrap_or_else(PoisonError::into_inner).clone();
        event::tell(ear.as_ref(), event);
    }

    /// Sets who listens from now on.
    pub(super) fn hear(&self, ear: Ear) {
        *self.ear.lock().unwrap_or_else(PoisonError::into_inner) = Some(ear);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_file_that_is_moved_away_while_it_is_opened_is_not_taken_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, "1").unwrap();
        let site = Site::new(path.clone(), Name::new("baton").unwrap(), Clock::system(), false);
        let told = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&told);
        site.hear(Arc::new(move |_: &StoreEvent| hears.store(true, Ordering::Relaxed)));
        let is = FileId::of(&path);
        assert!(is.is_some());
        site.opened(&path, is);
        site.opened(&path, None);
        site.opened(&path, is);
        assert!(!told.load(Ordering::Relaxed));
        std::fs::write(folder.path().join("y.db"), "1").unwrap();
        site.opened(&path, FileId::of(&folder.path().join("y.db")));
        assert!(told.load(Ordering::Relaxed));
    }
}
