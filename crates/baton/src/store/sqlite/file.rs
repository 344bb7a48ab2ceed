//! The store's file: found, checked, made, opened.
//!
//! A new file is built complete under another name and then renamed, under the writers' lock, so that nobody ever
//! sees half of one. An existing file is first looked at through a read-only connection: one that is not a store is
//! left as it was. The file itself is never opened but by SQLite, because closing such a handle would drop the locks
//! that SQLite holds on it.

use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use super::{lock::Turnstile, mounts};
use crate::{
    message::SessionId,
    store::{Refusal, StoreError},
};

/// Says in the file's header that it is a Baton store: the letters `Batn`.
const APPLICATION: i32 = 0x4261_746e;
/// The newest format this release reads, and the one it writes; see `lift` for older ones.
pub(super) const FORMAT: u32 = 2;
const SCHEMA: &str = include_str!("schema.sql");
/// How long SQLite itself waits for a lock before the wait begins anew.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Messages: on disk before they are acknowledged.
    Messages,
    /// Beats: a lost one costs nothing, so none waits for the disk.
    Beats,
    /// Looking only.
    Reads,
}

/// A checked file, open.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) db: Connection,
    pub(super) turnstile: Turnstile,
    path: PathBuf,
    identity: Option<Identity>,
}

/// A file beside the store's.
pub(super) fn sidecar(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The path with links followed and, where the file does not exist yet, those of its folder.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let in_folder = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

impl OpenFile {
    /// Opens the store at `path`; makes it, and its folder, if it is missing and `create` is set.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if there is no store yet, [`StoreError::Unfit`] for anything that is not one or
    /// cannot be written, [`StoreError::Damaged`] for one that is broken, [`Refusal::NewerFormat`].
    pub(super) fn open(path: &Path, create: bool, purpose: Purpose) -> Result<Self, StoreError> {
        if create && let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| io_error(folder, &error))?;
        }
        let path = real_path(path);
        if let Some(kind) = mounts::network_file_system(&path) {
            return Err(unfit(&path, &format!("is on a network file system ({kind}): put the store on a local disk")));
        }
        if is_missing(&path)? {
            if !create {
                return Err(not_yet(&path));
            }
            build(&path)?;
        }
        probe(&path)?;
        let db = Connection::open_with_flags(&path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
        if db.is_readonly(rusqlite::MAIN_DB)? {
            return Err(unfit(&path, "cannot be written: check its permissions"));
        }
        configure(&db, purpose)?;
        let turnstile = Turnstile::open(&path)?;
        let identity = Identity::of(&path);
        Ok(Self { db, turnstile, path, identity })
    }

    /// Whether the file opened is still the one at its path.
    pub(super) fn is_current(&self) -> bool {
        Identity::of(&self.path) == self.identity
    }
}

/// Refuses a file that a newer release has taken over since it was opened.
pub(super) fn check_format(db: &Connection) -> Result<(), StoreError> {
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > FORMAT { Err(Refusal::NewerFormat { found, known: FORMAT }.into()) } else { Ok(()) }
}

/// Looks at an existing file without being able to change it.
fn probe(path: &Path) -> Result<(), StoreError> {
    let db = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    db.busy_timeout(PATIENCE)?;
    let application = db.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0));
    let application = application.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => unfit(path, "is not a Baton store: choose another path"),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            unfit(path, &format!("cannot be used as it is ({error}): choose another path or check its permissions"))
        }
        _ => error.into(),
    })?;
    if application != APPLICATION {
        return Err(unfit(path, "is the database of another program: choose another path"));
    }
    check_format(&db)
}

fn configure(db: &Connection, purpose: Purpose) -> Result<(), StoreError> {
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(128);
    // Without this a statement is compiled anew whenever a value is bound that its plan might depend on.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "mmap_size", 0)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cache_size", -16_384)?;
    match purpose {
        Purpose::Messages => {
            db.pragma_update(None, "synchronous", "FULL")?;
            db.pragma_update_and_check(None, "wal_autocheckpoint", 2_000, |_| Ok(()))?;
            db.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        }
        // Beats copy the log back only where nobody else does.
        Purpose::Beats => {
            db.pragma_update(None, "synchronous", "NORMAL")?;
            db.pragma_update_and_check(None, "wal_autocheckpoint", 6_000, |_| Ok(()))?;
            db.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
        }
        Purpose::Reads => db.pragma_update(None, "query_only", true)?,
    }
    Ok(())
}

/// Builds an empty store, if there is still none when it is this writer's turn.
fn build(path: &Path) -> Result<(), StoreError> {
    let turnstile = Turnstile::open(path)?;
    let _turn = turnstile.enter()?;
    if !is_missing(path)? {
        return Ok(());
    }
    // A log left behind by a file that was removed would be taken for the new one's.
    for suffix in ["-wal", "-shm", "-journal"] {
        remove(&sidecar(path, suffix))?;
    }
    let site = sidecar(path, &format!("-{}", SessionId::random()));
    let built = fill(&site).and_then(|()| fs::rename(&site, path).map_err(|error| io_error(path, &error)));
    if built.is_err() {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            remove(&sidecar(&site, suffix))?;
        }
    }
    built?;
    sync_folder(path)
}

fn fill(site: &Path) -> Result<(), StoreError> {
    let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let db = Connection::open_with_flags(site, flags(create))?;
    db.pragma_update(None, "page_size", 4_096)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", FORMAT)?;
    db.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn flags(flags: OpenFlags) -> OpenFlags {
    flags | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Whether there is no file, or one in which nothing was ever written.
fn is_missing(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(found.len() == 0),
        Ok(_) => Err(unfit(path, "is not a file: choose another path")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io_error(path, &error)),
    }
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error(path, &error)),
        _ => Ok(()),
    }
}

/// Makes the new name last through a power failure.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|_| cfg!(unix)) {
        Some(folder) => {
            fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io_error(folder, &error))
        }
        None => Ok(()),
    }
}

fn not_yet(path: &Path) -> StoreError {
    StoreError::Unreachable(format!("no store at {} yet: start a node, or give another path", path.display()))
}

fn unfit(path: &Path, why: &str) -> StoreError {
    StoreError::Unfit(format!("{} {why}", path.display()))
}

fn io_error(path: &Path, error: &std::io::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::NoRoom(format!("{text}: free some room")),
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => StoreError::Unreachable(text),
        _ => StoreError::Unfit(format!("{text}: choose another path or check its permissions")),
    }
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(path).ok().map(|found| Self(found.dev(), found.ino()))
    }

    /// Elsewhere an open file cannot be removed.
    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Self> {
        Some(Self(0, 0))
    }
}
