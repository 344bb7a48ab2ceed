//! Whose log it is: SQLite replays whatever lies beside a file under the right name, so this asks first.
//!
//! **Invariants.** While a writer has the store open, the mark in the file, the note beside it and the log agree. A log
//! is copied back into the file only after that was seen. A log that is not the file's is put aside under another
//! name, by whoever is alone inside; it is never replayed and never deleted. An empty log of the file's own is no lost
//! log: the file has everything.
//!
//! How a period begins and ends is in `period`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    location::{io_error, sidecar, unfit},
    mark::{self, Mark},
    note::{self, FileId, Note},
    presence_lock::may_not,
};
use crate::store::{StoreError, StoreEvent};

/// How often, and how many times, one looks again at marks that disagree: another may be about to change both.
const LOOK_AGAIN: (Duration, u32) = (Duration::from_millis(10), 10);

/// Whether there is a log with anything in it.
pub(super) fn has_log(path: &Path) -> bool {
    fs::metadata(sidecar(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Whether the log beside the file at `path`, empty or not, is that file's own.
pub(super) fn belongs(path: &Path, mark: &Mark) -> bool {
    match (mark, Note::read(path)) {
        (Mark::Absent, _) => true,
        (_, Some(note)) if note.log == FileId::of(&sidecar(path, "-wal")) => note.names(mark),
        (Mark::Closed, _) => false,
        // The note speaks of another log: this one was brought along with its file.
        (Mark::Open(_), _) => true,
    }
}

/// Whether the file at `path` needs a log that is not beside it.
pub(super) fn is_lost(path: &Path, mark: &Mark) -> bool {
    let empty = || FileId::of(&sidecar(path, "-wal")).is_some();
    let known_lost = || Note::read(path).is_some_and(|note| note.is_of_lost());
    matches!(mark, Mark::Open(_)) && !has_log(path) && !(empty() && belongs(path, mark) && !known_lost())
}

/// Looks at what lies beside the file, alone: puts aside what is not its own. Tells what was done, if anything.
///
/// # Errors
/// [`StoreError::Unfit`] if a foreign log cannot be renamed.
pub(super) fn examine(path: &Path) -> Result<Option<StoreEvent>, StoreError> {
    let mark = mark::read(path)?;
    // A store that was ever written has no rollback journal: SQLite would play back whatever lies there.
    let journal = mark != Mark::Absent && fs::symlink_metadata(sidecar(path, "-journal")).is_ok();
    if journal || (has_log(path) && !belongs(path, &mark)) {
        let aside = put_aside(path, if journal { "-journal" } else { "-wal" })?;
        return Ok(Some(StoreEvent::LogSetAside { path: path.to_owned(), aside }));
    }
    if !is_lost(path, &mark) {
        // A note that is not true of what lies here would keep others out until a writer comes. Where the mark was just
        // being struck out, it is what tells whose log that is.
        let stale = Note::read(path).is_some_and(|note| !is_of(path, &note));
        if stale && !(mark == Mark::Closed && has_log(path)) {
            unless_denied(Note::remove(path)).map_err(|error| io_error(path, &error))?;
        }
        return Ok(None);
    }
    // SQLite is about to make an empty log here, which must not count as the file's own.
    unless_denied(Note::of_lost().write(path)).map_err(|error| io_error(path, &error))?;
    let aside =
        (1..).map(|nth| aside(path, "-wal", nth)).take_while(|aside| fs::symlink_metadata(aside).is_ok()).last();
    Ok(Some(StoreEvent::LogMissing { path: path.to_owned(), aside }))
}

/// Nothing has to be noted where nothing can be written: no log is made there either.
fn unless_denied(noted: io::Result<()>) -> io::Result<()> {
    match noted {
        Err(error) if may_not(&error) => Ok(()),
        noted => noted,
    }
}

/// Refuses a file that has several names and lacks its log: that one may lie beside another of them. Alone.
///
/// # Errors
/// [`StoreError::Unfit`], and those of SQLite.
pub(super) fn check_names(path: &Path) -> Result<(), StoreError> {
    let names = note::names(path);
    let mark = mark::read(path)?;
    if names > 1 && (has_log(path) && !belongs(path, &mark) || is_lost(path, &mark)) {
        return Err(unfit(
            path,
            &format!(
                "has {names} names (hard links), was not closed in order and has not its own log beside it: use the name \
                 it was used by, or remove the others if that log is lost"
            ),
        ));
    }
    Ok(())
}

/// The name of a log put aside.
fn aside(path: &Path, kind: &str, nth: u32) -> PathBuf {
    sidecar(path, &format!("{kind}.aside-{nth}"))
}

/// Renames a log that a former file has left behind; where it is now.
///
/// # Errors
/// [`StoreError::Unfit`] if the folder cannot be written.
pub(super) fn put_aside(path: &Path, kind: &str) -> Result<PathBuf, StoreError> {
    let failed = |error: &io::Error| io_error(path, error);
    let place = |nth: u32| aside(path, kind, nth);
    let nth = (1..).find(|nth| fs::symlink_metadata(place(*nth)).is_err()).unwrap_or(u32::MAX);
    fs::rename(sidecar(path, kind), place(nth)).map_err(|error| failed(&error))?;
    // The shared memory is an index of the log, made anew from it, and holds nothing else.
    match fs::remove_file(sidecar(path, "-shm")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
        _ => {}
    }
    Note::remove(path).map_err(|error| failed(&error))?;
    Ok(place(nth))
}

/// Whether the file at `path` is the one that those inside use; true as well while nobody writes.
pub(super) fn agrees(path: &Path) -> bool {
    Note::read(path).is_none_or(|note| note.is_of_lost() || is_of(path, &note))
}

/// The same, for one inside: looks a few times, since another may be about to change both.
pub(super) fn comes_to_agree(path: &Path) -> bool {
    let (pause, times) = LOOK_AGAIN;
    (0..times).any(|nth| {
        if nth > 0 {
            std::thread::sleep(pause);
        }
        agrees(path)
    })
}

/// Whether file, log and shared memory at `path` are those of this note.
pub(super) fn is_of(path: &Path, note: &Note) -> bool {
    Note::now(path, note.marks.clone()) == *note && is_marked(path, note)
}

/// Whether the file at `path` has a mark of this note.
pub(super) fn is_marked(path: &Path, note: &Note) -> bool {
    mark::read(path).is_ok_and(|mark| note.names(&mark))
}
