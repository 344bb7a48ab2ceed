//! Whose log it is: SQLite replays whatever lies beside a file under the right name, so this asks first.
//!
//! **Invariants.** While a writer has the store open, the mark in the file, the note beside it and the log agree. A log
//! is copied back into the file only after that was seen. A log that is not the file's is put aside under another
//! name, by whoever is alone inside; it is never replayed and never deleted. The mark changes only while the log is
//! empty, so that a process killed midway leaves either a pair that agrees or a log in which nothing but the mark is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, MAIN_DB, OpenFlags, config::DbConfig, wal::CheckpointMode};

use super::{
    connection::{PATIENCE, flags},
    holder,
    location::{io_error, sidecar, unfit},
    lock::Turnstile,
    mark::{self, Mark},
    note::{self, FileId, Note},
    sweep,
};
use crate::store::{StoreError, StoreEvent};

/// How long the first writer waits for a foreign reader before it says so.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// How long the last one out waits for a foreign reader before it leaves the log to the next one.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How often one asks again who waits for readers to let go of the log.
const AGAIN: Duration = Duration::from_millis(5);
/// How often, and how many times, one looks again at marks that disagree: another may be about to change both.
const LOOK_AGAIN: (Duration, u32) = (Duration::from_millis(10), 10);

/// Whether there is a log with anything in it.
pub(super) fn has_log(path: &Path) -> bool {
    fs::metadata(sidecar(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Whether the log beside the file at `path` is that file's own.
fn belongs(path: &Path, mark: &Mark) -> bool {
    match (mark, Note::read(path)) {
        (Mark::Absent, _) => true,
        (Mark::Closed, _) => false,
        (Mark::Open(span), Some(note)) if note.log == FileId::of(&sidecar(path, "-wal")) => note.span == *span,
        // The note speaks of another log: this one was brought along with its file.
        (Mark::Open(_), _) => true,
    }
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
    if has_log(path) {
        return Ok(None);
    }
    // A note without a log is of a span that somebody else has ended.
    Note::remove(path).map_err(|error| io_error(path, &error))?;
    let lost = matches!(mark, Mark::Open(_));
    let aside =
        (1..).map(|nth| aside(path, "-wal", nth)).take_while(|aside| fs::symlink_metadata(aside).is_ok()).last();
    Ok(lost.then(|| StoreEvent::LogMissing { path: path.to_owned(), aside }))
}

/// Refuses a file that has several names and lacks its log: that one may lie beside another of them. Alone.
///
/// # Errors
/// [`StoreError::Unfit`], and those of SQLite.
pub(super) fn check_names(path: &Path) -> Result<(), StoreError> {
    let names = note::names(path);
    let mark = mark::read(path)?;
    let own = has_log(path) && belongs(path, &mark);
    if names > 1 && !own && (has_log(path) || matches!(mark, Mark::Open(_))) {
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
    Note::read(path).is_none_or(|note| is_of(path, &note))
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
    Note::now(path, note.span.clone()) == *note && is_marked(path, &note.span)
}

/// Whether the file at `path` is in this span.
pub(super) fn is_marked(path: &Path, span: &str) -> bool {
    mark::read(path).is_ok_and(|mark| matches!(mark, Mark::Open(open) if open == span))
}

/// Sees to it that a span is begun; its note. For writers, before their first write.
///
/// # Errors
/// As SQLite's; [`StoreError::Unreachable`] if another program keeps looking at the file: while it does, the mark cannot
/// get there.
pub(super) fn begin(db: &Connection, path: &Path, turnstile: &Turnstile) -> Result<Note, StoreError> {
    let begun = Instant::now();
    db.busy_timeout(FIRST_PATIENCE)?;
    let note = loop {
        let note = {
            let _turn = turnstile.enter()?;
            try_begin(db, path)
        };
        match note? {
            Some(note) => break note,
            None if begun.elapsed() > FIRST_PATIENCE => return Err(kept_out(path)),
            None => std::thread::sleep(AGAIN),
        }
    };
    db.busy_timeout(PATIENCE)?;
    Ok(note)
}

/// In one's turn; nothing while others are in the way.
fn try_begin(db: &Connection, path: &Path) -> Result<Option<Note>, StoreError> {
    if let Some(note) = Note::read(path).filter(|note| is_of(path, note)) {
        return Ok(Some(note));
    }
    // First the log is emptied under the mark it has, so that no half of it is ever under another.
    if !copied_back(db)? {
        return Ok(None);
    }
    Note::remove(path).map_err(|error| io_error(path, &error))?;
    // While somebody reads, the mark would stay in a log in which nothing else is.
    if !holder::readers(path).is_empty() {
        return Ok(None);
    }
    let span = mark::new_span();
    let written =
        db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).and_then(|()| mark::write(db, Some(&span)));
    if unless_busy(written)?.is_none() || !copied_back(db)? {
        return Ok(None);
    }
    let note = Note::now(path, span);
    note.write(path).map_err(|error| io_error(path, &error))?;
    Ok(Some(note))
}

/// What is said where nobody can begin to write.
fn kept_out(path: &Path) -> StoreError {
    let who = holder::of(path).or_else(|| holder::named(&holder::readers(path)));
    let (path, who) = (path.display(), who.unwrap_or_else(|| "another program".to_owned()));
    StoreError::Unreachable(format!(
        "{who} has {path} open in a transaction, and had before anybody could write: end it"
    ))
}

/// Ends the span, alone: everything goes into the file, and the log away. What is not in order is left to the next.
pub(super) fn end(path: &Path) -> Result<(), StoreError> {
    let mark = mark::read(path)?;
    let note = Note::read(path);
    // A span whose log is missing was only looked at: with the log, whoever finds it, it can still be ended.
    let lost = note.is_none() && !has_log(path);
    let foreign = note.is_some_and(|note| mark != Mark::Open(note.span));
    if foreign || (has_log(path) && !belongs(path, &mark)) {
        return Ok(());
    }
    let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    db.busy_timeout(LAST_PATIENCE)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    if db.is_readonly(MAIN_DB)? {
        return Ok(());
    }
    let mut over = copied_back(&db)?;
    let ends = !lost && matches!(mark, Mark::Open(_));
    if over && ends {
        // What is not given back now is given back by the next.
        sweep::last_step(&db).ok();
        over = copied_back(&db)?;
    }
    if over && ends {
        mark::write(&db, None)?;
        over = copied_back(&db)?;
    }
    if !over {
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    db.close().map_err(|(_, error)| error)?;
    if over {
        Note::remove(path).map_err(|error| io_error(path, &error))?;
    }
    Ok(())
}

/// Copies the whole log into the file and empties it; whether others let that happen.
fn copied_back(db: &Connection) -> Result<bool, StoreError> {
    Ok(unless_busy(db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE))?.is_some())
}

/// Nothing if another connection was in the way.
fn unless_busy<T>(result: rusqlite::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error) if super::fault::is_busy(&error) => Ok(None),
        result => Ok(Some(result?)),
    }
}
