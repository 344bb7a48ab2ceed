//! A log that cannot be emptied: some reader, of this program or another, keeps looking at an old state of the store.
//!
//! SQLite never fails a reader for that; the log grows as long as there are writers. So it is told, with the name of the
//! process as far as the system tells, once at [`LONG`]; and from [`MOST`] on what brings new bodies is refused as on a full
//! disk, while everything else goes on. When the reader has gone the log is emptied, and that is told too.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Site, file::OpenFile, holder, location::sidecar};
use crate::store::{StoreError, StoreEvent};

/// Pages of a log that is too long to be emptied with the next commit: 64 MiB, as much as an empty log may take up.
pub(super) const LONG: usize = (64 << 20) / PAGE;
/// Pages of the longest log that takes new bodies.
const MOST: usize = (256 << 20) / PAGE;
const PAGE: usize = 4_096;

/// What is known of the readers in the way.
#[derive(Debug, Default)]
pub(super) struct HeldLog(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Those that were there at each try to empty the log.
    readers: Option<BTreeSet<u32>>,
    /// Whether it was told that the log is long, and that nothing new is taken.
    told: bool,
    told_full: bool,
}

impl State {
    fn reader(&self) -> Option<String> {
        holder::named(self.readers.as_ref()?)
    }
}

impl HeldLog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of those that were there before, those that are there still. The system's list of locks may lack one that is there
/// while others come and go: a look that finds none of them tells nothing of them.
fn still_there(former: BTreeSet<u32>, found: &BTreeSet<u32>) -> BTreeSet<u32> {
    let both: BTreeSet<u32> = former.intersection(found).copied().collect();
    match (both.is_empty(), found.is_empty()) {
        (false, _) => both,
        (true, true) => former,
        (true, false) => found.clone(),
    }
}

impl Site {
    /// Notes that the log could not be emptied, at so many pages.
    pub(super) fn log_is_held(&self, path: &Path, pages: usize) {
        let found = holder::readers(path);
        let mut state = self.held_log.state();
        state.readers = Some(state.readers.take().map_or_else(|| found.clone(), |former| still_there(former, &found)));
        if pages >= LONG && !state.told {
            state.told = true;
            let reader = state.reader();
            drop(state);
            self.tell(&StoreEvent::LogHeld { path: self.path.clone(), reader });
        }
    }

    /// Notes that the log was emptied.
    pub(super) fn log_is_free(&self) {
        let former = std::mem::take(&mut *self.held_log.state());
        if former.told {
            self.tell(&StoreEvent::LogEmptied { path: self.path.clone() });
        }
    }

    /// Refuses new bodies while the log is as long as it may be.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`].
    pub(super) fn admit_to_log(&self, file: &OpenFile) -> Result<(), StoreError> {
        if file.log_pages() < MOST {
            return Ok(());
        }
        let mut state = self.held_log.state();
        let (reader, path) = (state.reader(), self.path.clone());
        // Before the first try to empty it, it may be long for no reason.
        let told = !state.told || std::mem::replace(&mut state.told_full, true);
        drop(state);
        let full = StoreEvent::LogFull { path, reader };
        if !told {
            self.tell(&full);
        }
        Err(StoreError::NoRoom(full.to_string()))
    }

    /// Why there is no room: a log that is held takes up what the disk had.
    pub(super) fn why_no_room(&self, error: StoreError) -> StoreError {
        let state = self.held_log.state();
        match error {
            StoreError::NoRoom(why) if state.told => {
                let held = StoreEvent::LogHeld { path: self.path.clone(), reader: state.reader() };
                StoreError::NoRoom(format!("{why}; {held}"))
            }
            error => error,
        }
    }

    /// For one that only looks: tells of a long log with a reader on it.
    pub(super) fn look_at_log(&self, path: &Path) {
        // A log that was emptied is cut to the length that counts as long, and begun anew in that.
        let long = fs::metadata(sidecar(path, "-wal")).is_ok_and(|log| log.len() > (LONG * PAGE * 5 / 4) as u64);
        if long && !holder::readers(path).is_empty() {
            self.log_is_held(path, LONG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_one_look_missed_is_known_still() {
        let set = |readers: &[u32]| readers.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(still_there(set(&[1, 2]), &set(&[2, 3])), set(&[2]));
        assert_eq!(still_there(set(&[2]), &set(&[])), set(&[2]));
        assert_eq!(still_there(set(&[1]), &set(&[2])), set(&[2]));
    }
}
