//! A store copied to a file of its own, and brought back from one.
//!
//! **Guarantees.** A backup is the store at one instant, of all its fleets, also while nodes work; it is checked before
//! it gets its name, and complete without any other file. A restore needs that nobody has the store open; it is
//! checked in the same way, takes the place of the store in one step, and leaves no log behind. The store that was
//! there is kept under another name, with its log. In every copy the sessions have names that nobody carries: whoever
//! finds the copy in the store's place, also by hand and under its feet, joins anew instead of going on with numbers
//! that mean something else there; what those sessions held goes back after their leases.
//!
//! **Failure.** Nothing is changed, and nothing is left lying about; what one that was killed has left, the next restore
//! removes.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup as Copying, StepResult},
};

use super::{
    SqliteStore, building,
    connection::{flags, probe},
    destination,
    file::{OpenFile, Purpose},
    holder,
    location::{check_folder, io_error, is_missing, real_path, sidecar},
    log,
    mark::{self, Mark},
    note::Note,
    open_guard::{hold_alone, let_by, try_hold},
    presence_lock::PresenceLock,
    remains,
    site::Site,
    wake,
};
use crate::{
    message::Name,
    store::{Clock, Ear, StoreError},
};

/// How long a restore waits for commands that only look.
const VISITORS: Duration = Duration::from_secs(1);
/// How often a copy asks again that waits for a lock.
const AGAIN: Duration = Duration::from_millis(10);

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The size of the file.
    pub bytes: u64,
    /// How many fleets are in it.
    pub fleets: u64,
}

/// A store that was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What was brought back.
    pub backup: Backup,
    /// Where the store is that was there before.
    pub kept: Option<PathBuf>,
}

/// Why a store was not brought back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Somebody has the store open.
    #[error("the store at {} is open in {who}", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
        /// The processes, for people.
        who: String,
    },
    /// The backup or the store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SqliteStore {
    /// Copies the store at `path` to the file `to`, over a regular file that may be there. What happens to it goes to
    /// `ear`.
    ///
    /// # Errors
    /// As opening the store; [`StoreError::Unfit`] if `to` is part of the store, a link, a folder or a device; [`StoreError::Damaged`] if the copy does not hold together.
    pub fn back_up(path: &Path, to: &Path, ear: Ear) -> Result<Backup, StoreError> {
        let to = absolute(to)?;
        let source = open(path, ear)?;
        destination::check(&to, source.path())?;
        building::in_place(&to, |site| copy(&source.db, site))
    }

    /// Puts the backup `from` in the place of the store at `path`. What happens to it goes to `ear`.
    ///
    /// # Errors
    /// [`RestoreError`]; nothing is changed then.
    pub fn restore(path: &Path, from: &Path, ear: Ear) -> Result<Restored, RestoreError> {
        let (path, from) = (absolute(path)?, real_path(&absolute(from)?));
        if is_missing(&from)? {
            return Err(StoreError::Unfit(format!("no backup at {}: name the file", from.display())).into());
        }
        check_folder(&path)?;
        let path = real_path(&path);
        if path == from {
            return Err(StoreError::Unfit(format!("{} is the store itself: name its backup", from.display())).into());
        }
        let source = Source::open(&from, ear)?;
        let missing = is_missing(&path)?;
        // Those who had the store open let go of a file that is gone, and wait for it.
        if missing && wake::is_listened_to(&path) {
            return Err(RestoreError::InUse { path, who: "processes that wait for its file".to_owned() });
        }
        // Before there is a door beside it, which nobody would need where this is refused.
        if !missing && PresenceLock::existing(&path).is_ok_and(|door| door.is_none()) {
            hold_alone(&path).map_err(|error| in_use(&path, error))?;
        }
        let door = PresenceLock::of(&path)
            .map_err(|error| io_error(&path, &error))?
            .ok_or_else(|| StoreError::Unfit(format!("{} is in a folder that cannot be written", path.display())))?;
        let begun = Instant::now();
        let _hold = loop {
            alone(&door, &path)?;
            if missing {
                break None;
            }
            if let Some(hold) = try_hold(&path, begun).map_err(|error| in_use(&path, error))? {
                break hold;
            }
            let_by(&door)?;
        };
        building::clear(&path)?;
        let mut kept = None;
        let backup = building::in_place(&path, |site| {
            let backup = copy(source.db(), site)?;
            kept = keep(&path)?;
            Ok(backup)
        });
        let backup = backup?;
        // From here on the former log is no longer beside its file; if this fails, whoever opens the store sees to it.
        if let Some(kept) = &kept {
            move_log(&path, kept)?;
        }
        Note::remove(&path).map_err(|error| io_error(&path, &error))?;
        building::sync_folder(&path)?;
        Ok(Restored { backup, kept })
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let absolute = std::path::absolute(path).ok().filter(|path| path.file_name().is_some());
    absolute.ok_or_else(|| StoreError::Unfit(format!("{:?} names no file", path.display())))
}

/// A store, open for reading.
fn open(path: &Path, ear: Ear) -> Result<OpenFile, StoreError> {
    let fleet = Name::new(crate::DEFAULT_FLEET)?;
    let site = Site::new(absolute(path)?, fleet, Clock::system(), false);
    site.hear(ear);
    OpenFile::open(&site, Purpose::Reads)
}

/// Waits for visitors, and refuses whoever stays.
fn alone(door: &PresenceLock, path: &Path) -> Result<(), RestoreError> {
    let deadline = Instant::now() + VISITORS;
    while !door.is_alone() {
        if Instant::now() > deadline {
            let who = holder::inside(path).unwrap_or_else(|| "another process".to_owned());
            return Err(RestoreError::InUse { path: path.to_owned(), who });
        }
        std::thread::sleep(AGAIN);
    }
    Ok(())
}

/// What is said of somebody who has the file open by another name.
fn in_use(path: &Path, error: StoreError) -> RestoreError {
    match error {
        StoreError::Unfit(_) => {
            let (who, name) = holder::with_file(path).unwrap_or_else(|| ("another process".to_owned(), None));
            let name = name.map(|name| format!(", by the name {}", name.display())).unwrap_or_default();
            RestoreError::InUse { path: path.to_owned(), who: format!("{who}{name}") }
        }
        error => error.into(),
    }
}

/// A backup, open.
enum Source {
    /// Closed in order: read without touching anything beside it.
    Closed(Connection),
    /// With its log.
    Open(Box<OpenFile>),
}

impl Source {
    fn open(from: &Path, ear: Ear) -> Result<Self, StoreError> {
        probe(from)?;
        Ok(match mark::read(from)? {
            Mark::Closed => Self::Closed(mark::bare(from)?),
            Mark::Absent if !log::has_log(from) => Self::Closed(mark::bare(from)?),
            _ => Self::Open(Box::new(open(from, ear)?)),
        })
    }

    const fn db(&self) -> &Connection {
        match self {
            Self::Closed(db) => db,
            Self::Open(file) => &file.db,
        }
    }
}

/// Copies one instant of a store into the empty file at `site`, and checks what came of it.
fn copy(source: &Connection, site: &Path) -> Result<Backup, StoreError> {
    let mut copy = Connection::open_with_flags(site, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    copy.pragma_update(None, "synchronous", "FULL")?;
    {
        // In one step: in several, every write of a live fleet would begin the copy anew.
        let copying = Copying::new(source, &mut copy)?;
        while copying.step(-1)? != StepResult::Done {
            std::thread::sleep(AGAIN);
        }
    }
    copy.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let found: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(StoreError::Damaged(format!("the copy does not hold together: {found}")));
    }
    estrange_sessions(&copy)?;
    mark::write(&copy, None)?;
    let sql = format!("SELECT count(*) FROM fleets WHERE {}", remains::NAMED);
    let fleets: i64 = copy.query_row(&sql, [], |row| row.get(0))?;
    copy.close().map_err(|(_, error)| error)?;
    let file = fs::File::open(site).and_then(|file| file.sync_all().map(|()| file));
    let size = file.and_then(|file| file.metadata()).map_err(|error| io_error(site, &error))?.len();
    Ok(Backup { bytes: size, fleets: fleets.unsigned_abs() })
}

/// Gives every session another name: their numbers go on in the store, and none of them may go on in its copy.
fn estrange_sessions(db: &Connection) -> Result<(), StoreError> {
    let transaction = db.unchecked_transaction()?;
    db.execute_batch("CREATE TEMP TABLE strangers AS SELECT session, randomblob(16) AS stranger FROM sessions")?;
    let columns: Vec<(String, String)> = {
        let mut query = db.prepare(
            "SELECT t.name, c.name FROM main.sqlite_schema t, pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND c.name IN ('session', 'holder', 'drainer')",
        )?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (table, column) in columns {
        db.execute(
            &format!(
                "UPDATE main.\"{table}\" SET {column} = (SELECT stranger FROM strangers s WHERE s.session = \"{table}\".{column}) \
                 WHERE {column} IN (SELECT session FROM strangers)"
            ),
            [],
        )?;
    }
    db.execute("UPDATE fleets SET incarnation = lower(hex(randomblob(16)))", [])?;
    db.execute_batch("DROP TABLE strangers")?;
    Ok(transaction.commit()?)
}

/// Gives the store that is there a second name, under which it stays when its place is taken.
fn keep(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    if is_missing(path)? {
        return Ok(None);
    }
    for nth in 1_u32.. {
        let kept = sidecar(path, &format!(".replaced-{nth}"));
        match fs::hard_link(path, &kept) {
            Ok(()) => return Ok(Some(kept)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // A file system without second names: for a moment there is no store.
            Err(_) if fs::symlink_metadata(&kept).is_err() => {
                fs::rename(path, &kept).map_err(|error| io_error(path, &error))?;
                return Ok(Some(kept));
            }
            Err(error) => return Err(io_error(path, &error)),
        }
    }
    Ok(None)
}

/// Lets a log follow the file it belongs to.
fn move_log(path: &Path, kept: &Path) -> Result<(), StoreError> {
    for suffix in ["-wal", "-shm"] {
        match fs::rename(sidecar(path, suffix), sidecar(kept, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io_error(path, &error)),
            _ => {}
        }
    }
    Ok(())
}
