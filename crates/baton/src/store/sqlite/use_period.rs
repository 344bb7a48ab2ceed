//! A period of use, from the first writer that opens a file to the last process that closes it in order: how it begins and
//! ends.
//!
//! **Invariant.** The mark changes only while the log is empty, and only after the note names both the former and the new
//! mark. So a process that is killed, or finds the disk full, between any two steps leaves a file and a log that are judged
//! right (see `log`): nothing is lost, and no loss is reported that is none.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rusqlite::{Connection, MAIN_DB, OpenFlags, config::DbConfig, wal::CheckpointMode};

use super::{
    connection::{PATIENCE, connect},
    holder,
    location::{io_error, sidecar},
    lock::Turnstile,
    log,
    mark::{self, Mark},
    note::{FileId, Note},
    sweep,
};
use crate::store::StoreError;

/// How long the first writer waits for a foreign reader before it says so.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// How long the last one out waits for a foreign reader before it leaves the log to the next one.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How often one asks again who waits for readers to let go of the log.
const AGAIN: Duration = Duration::from_millis(5);

/// Sees to it that a period is begun; its note. For writers, before their first write.
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
    if let Some(note) = Note::read(path).filter(|note| note.is_of_one_span() && log::is_of(path, note)) {
        return Ok(Some(note));
    }
    let wal = db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
    // First the log is emptied under the mark it has, so that no half of it is ever under another.
    if unless_busy(wal)?.is_none() || !empty(db, path)? {
        return Ok(None);
    }
    // While somebody reads, the mark would stay in a log in which nothing else is.
    if !holder::readers(path).is_empty() {
        return Ok(None);
    }
    let period = mark::new_span();
    cut::here()?;
    write_note(path, vec![mark::read(path)?.word(), period.clone()])?;
    cut::here()?;
    if unless_busy(mark::write(db, Some(&period)))?.is_none() {
        return Ok(None);
    }
    cut::here()?;
    if !copied_back(db)? {
        return Ok(None);
    }
    cut::here()?;
    // Before the first write: from then on the log is of no other mark.
    write_note(path, vec![period]).map(Some)
}

/// Copies the log back and empties it, with a note that is true of it then too; whether others let that happen.
fn empty(db: &Connection, path: &Path) -> Result<bool, StoreError> {
    // A note of another log would be one of the wrong period as soon as this one is empty.
    if log::has_log(path) && Note::read(path).is_some_and(|note| note.log != FileId::of(&sidecar(path, "-wal"))) {
        Note::remove(path).map_err(|error| io_error(path, &error))?;
    }
    cut::here()?;
    copied_back(db)
}

/// Notes that the log that lies there now is of a file with one of these marks.
fn write_note(path: &Path, marks: Vec<String>) -> Result<Note, StoreError> {
    let note = Note::now(path, marks);
    note.write(path).map_err(|error| io_error(path, &error))?;
    Ok(note)
}

/// What is said where nobody can begin to write.
fn kept_out(path: &Path) -> StoreError {
    let who = holder::of(path).or_else(|| holder::named(&holder::readers(path)));
    let (path, who) = (path.display(), who.unwrap_or_else(|| "another program".to_owned()));
    StoreError::Unreachable(format!(
        "{who} has {path} open in a transaction, and had before anybody could write: end it"
    ))
}

/// Ends the use_period, alone: everything goes into the file, and the log away. What is not in order is left to the next.
pub(super) fn end(path: &Path) -> Result<(), StoreError> {
    let mark = mark::read(path)?;
    let foreign = Note::read(path).is_some_and(|note| !note.is_of_lost() && !note.names(&mark));
    // A period whose log is missing was only looked at: with the log, whoever finds it, it can still be ended.
    if foreign || log::is_lost(path, &mark) || (log::has_log(path) && !log::belongs(path, &mark)) {
        return Ok(());
    }
    // Whatever fails here leaves the log where it is.
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(LAST_PATIENCE)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    if db.is_readonly(MAIN_DB)? {
        return Ok(());
    }
    let mut over = empty(&db, path)?;
    cut::here()?;
    // The log may have held another mark than the file.
    let mark = mark::read(path)?;
    let ends = matches!(mark, Mark::Open(_));
    if over && ends {
        // What is not given back now is given back by the next.
        sweep::last_step(&db).ok();
        over = copied_back(&db)?;
    }
    if over && ends {
        cut::here()?;
        write_note(path, vec![mark.word(), Mark::Closed.word()])?;
        cut::here()?;
        mark::write(&db, None)?;
        cut::here()?;
        over = copied_back(&db)?;
        cut::here()?;
    }
    if over {
        // Then SQLite removes the empty log.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    }
    db.close().map_err(|(_, error)| error)?;
    cut::here()?;
    if over {
        Note::remove(path).map_err(|error| io_error(path, &error))?;
    }
    Ok(())
}

/// Copies the whole log into the file and empties it; whether others let that happen.
fn copied_back(db: &Connection) -> Result<bool, StoreError> {
    Ok(unless_busy(db.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE))?.is_some())
}

/// Where a test ends the work, as `kill -9` or a full disk may.
#[cfg(not(test))]
mod cut {
    #[expect(clippy::unnecessary_wraps, reason = "fails in tests")]
    pub(super) const fn here() -> Result<(), crate::store::StoreError> {
        Ok(())
    }
}

/// Nothing if another connection was in the way.
fn unless_busy<T>(result: rusqlite::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error) if super::fault::is_busy(&error) => Ok(None),
        result => Ok(Some(result?)),
    }
}

#[cfg(test)]
mod cut {
    use std::cell::Cell;

    use crate::store::StoreError;

    thread_local! {
        /// How many more steps are done before the cut.
        pub(super) static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    }

    pub(super) fn here() -> Result<(), StoreError> {
        match LEFT.get().checked_sub(1) {
            Some(left) => {
                LEFT.set(left);
                Ok(())
            }
            None => Err(StoreError::NoRoom("cut".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::{Site, building, file::OpenFile, file::Purpose},
        *,
    };
    use crate::{
        message::Name,
        store::{Clock, StoreEvent},
    };

    /// What must be in the file: a row that was written in the period before the cut.
    fn rows(db: &Connection) -> u32 {
        db.query_row("SELECT count(*) FROM fleets", [], |row| row.get(0)).unwrap()
    }

    fn insert(db: &Connection, nth: u32) {
        db.execute(
            "INSERT INTO fleets (name, incarnation, clock, last, joins, stop_now, keys) VALUES (?1, 1, 1, 1, 1, 1, 1)",
            [nth.to_string()],
        )
        .unwrap();
    }

    /// Opens the store as a process does that comes next; what it was told.
    fn next(path: &Path, purpose: Purpose) -> (OpenFile, Vec<StoreEvent>) {
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let hears = std::sync::Arc::clone(&told);
        let site = Site::new(path.to_owned(), Name::new("baton").unwrap(), Clock::system(), false);
        site.hear(std::sync::Arc::new(move |event: &StoreEvent| hears.lock().unwrap().push(event.clone())));
        let file = OpenFile::open(&site, purpose).unwrap();
        let told = told.lock().unwrap().clone();
        (file, told)
    }

    /// A connection that leaves everything as it is when it goes, as a process does that is killed.
    fn raw(path: &Path) -> Connection {
        connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
    }

    /// Begins a period up to the cut, or ends it; whether it came to the end of that.
    fn until_cut(steps: u32, work: impl FnOnce() -> Result<(), StoreError>) -> bool {
        cut::LEFT.set(steps);
        let done = work();
        cut::LEFT.set(u32::MAX);
        assert!(matches!(&done, Ok(()) | Err(StoreError::NoRoom(_))), "{done:?}");
        done.is_ok()
    }

    /// What was there before the cut: whether the period before was ended, and whether its log was emptied.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Before {
        Ended,
        Killed,
        KilledWithEmptyLog,
        BroughtAlong,
    }

    fn prepare(path: &Path, before: Before) {
        building::build(path).unwrap();
        let db = raw(path);
        begin(&db, path, &Turnstile::open(path).unwrap()).unwrap();
        insert(&db, 1);
        match before {
            Before::Ended => {
                drop(db);
                end(path).unwrap();
            }
            Before::Killed => drop(db),
            Before::KilledWithEmptyLog => assert!(copied_back(&db).unwrap()),
            Before::BroughtAlong => {
                drop(db);
                for suffix in ["-shm", "-log"] {
                    fs::remove_file(sidecar(path, suffix)).unwrap();
                }
            }
        }
    }

    const BEFORE: [Before; 4] = [Before::Ended, Before::Killed, Before::KilledWithEmptyLog, Before::BroughtAlong];

    /// After a cut at any step of `work` nothing is missing, and nobody is told that it is.
    fn cut_everywhere(before: Before, purpose: Purpose, work: impl Fn(&Path) -> Result<(), StoreError>) {
        for steps in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.db");
            prepare(&path, before);
            let done = until_cut(steps, || work(&path));
            let case = format!("{before:?}, cut after {steps} steps, then {purpose:?}");
            let (file, told) = next(&path, purpose);
            assert_eq!((rows(&file.db), told), (1, Vec::new()), "{case}");
            // Others come in beside it.
            let (other, told) = next(&path, Purpose::Messages);
            insert(&other.db, 2);
            assert_eq!((rows(&other.db), told), (2, Vec::new()), "{case}");
            drop((file, other));
            assert_eq!(mark::read(&path).unwrap(), Mark::Closed, "{case}");
            assert!(!log::has_log(&path) && !sidecar(&path, "-wal.aside-1").exists(), "{case}");
            if done {
                return;
            }
        }
    }

    #[test]
    fn a_cut_at_any_step_of_a_beginning_loses_nothing_and_alarms_nobody() {
        for before in BEFORE {
            for purpose in [Purpose::Messages, Purpose::Reads] {
                cut_everywhere(before, purpose, |path| {
                    let db = raw(path);
                    begin(&db, path, &Turnstile::open(path)?).map(drop)
                });
            }
        }
    }

    #[test]
    fn a_cut_at_any_step_of_an_end_loses_nothing_and_alarms_nobody() {
        for before in BEFORE {
            for purpose in [Purpose::Messages, Purpose::Reads] {
                cut_everywhere(before, purpose, end);
            }
        }
    }

    #[test]
    fn a_lost_log_is_told_until_a_writer_goes_on_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        prepare(&path, Before::Killed);
        fs::remove_file(sidecar(&path, "-wal")).unwrap();
        let is_told = |told: &[StoreEvent]| matches!(told, [StoreEvent::LogMissing { .. }]);
        for purpose in [Purpose::Reads, Purpose::Reads, Purpose::Messages] {
            let (file, told) = next(&path, purpose);
            assert!(is_told(&told), "{purpose:?}: {told:?}");
            // Looking has made an empty log; one that is killed leaves it there.
            assert!(sidecar(&path, "-wal").exists());
            if purpose == Purpose::Reads {
                assert!(is_told(&log::examine(&path).unwrap().into_iter().collect::<Vec<_>>()));
            }
            drop(file);
        }
        assert_eq!(next(&path, Purpose::Reads).1, []);
    }
}
