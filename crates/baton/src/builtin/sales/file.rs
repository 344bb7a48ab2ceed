//! The file: its form, scans of it, and what is added to it. Everything here blocks.
//!
//! A total is one scan of all rows, within one snapshot, that SQLite adds up as it goes: there is no index over items, and
//! nothing of a row is kept. Rows are added in one transaction or not at all; whoever adds has them ready, since others
//! cannot write meanwhile.

use std::{
    fs::OpenOptions,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, Error, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use super::{Added, Keys, SalesError, amount::Total, sale::Sale};

/// What tells a file of sales from others: `BSLS`.
const APPLICATION: i64 = 0x4253_4c53;
const VERSION: i64 = 1;
/// How long is waited for another who makes the file.
const BUSY: Duration = Duration::from_secs(10);
/// Steps of a scan after which it is asked whether anybody still wants it.
const STEPS: i32 = 50_000;

/// What is scanned comes first, so that the rest of a row need not be looked at.
const SCHEMA: &str = "
    CREATE TABLE sale (
        amount INTEGER NOT NULL,
        item TEXT NOT NULL,
        transaction_id TEXT NOT NULL UNIQUE
    ) STRICT;
    CREATE TABLE identity (id TEXT NOT NULL) STRICT;";

/// An open file.
pub(super) struct File {
    /// Of the random id of its data, which was made with the file.
    pub(super) keys: Keys,
    /// By which it is seen whether another file has taken its place.
    number: (u64, u64),
    path: std::path::PathBuf,
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Connection>,
}

impl File {
    /// Opens the file; makes it if it is not there and `create` says so.
    pub(super) fn open(path: &Path, create: bool) -> Result<Self, SalesError> {
        if !create && !path.exists() {
            return Err(SalesError::Missing(path.to_owned()));
        }
        let mut writer = connect(path, true)?;
        let id = prepare(&mut writer).map_err(|error| of(path, &error))?;
        let id = id.ok_or_else(|| SalesError::Foreign(path.to_owned()))?;
        let number = number(path).ok_or_else(|| SalesError::Missing(path.to_owned()))?;
        let (readers, writer) = (Mutex::default(), Mutex::new(writer));
        Ok(Self { keys: Keys::new(&id), number, path: path.to_owned(), readers, writer })
    }

    /// Whether it is still the one of its name.
    pub(super) fn is_current(&self) -> bool {
        number(&self.path) == Some(self.number)
    }

    /// The sum over all rows, or over those of one item. It ends early, with an error, once it is not wanted any more.
    pub(super) fn total(&self, item: Option<&str>, unwanted: &Arc<AtomicBool>) -> Result<Total, SalesError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = idle.map_or_else(|| connect(&self.path, false), Ok)?;
        let unwanted = Arc::clone(unwanted);
        reader
            .progress_handler(STEPS, Some(move || unwanted.load(Ordering::Relaxed)))
            .map_err(|error| of(&self.path, &error))?;
        let total = scan(&reader, item).map_err(|error| of(&self.path, &error));
        if total.is_ok() {
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        }
        total
    }

    /// Adds sales, all or none. One that is there already is not added again. Another writer is waited for up to this
    /// moment.
    pub(super) fn add(
        &self, by: Instant, sales: impl Iterator<Item = Result<(u64, Sale), SalesError>>,
    ) -> Result<Added, SalesError> {
        let failed = |error: Error| of(&self.path, &error);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.busy_timeout(by.saturating_duration_since(Instant::now())).map_err(failed)?;
        let step = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let mut added = Added::default();
        {
            let mut insert = step
                .prepare_cached(
                    "INSERT INTO sale (transaction_id, item, amount) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                )
                .map_err(failed)?;
            let mut known = step
                .prepare_cached("SELECT item = ?2 AND amount = ?3 FROM sale WHERE transaction_id = ?1")
                .map_err(failed)?;
            for sale in sales {
                let (line, Sale { transaction_id, item, amount }) = sale?;
                let row = params![transaction_id, item, amount.minor_units];
                if insert.execute(row).map_err(failed)? == 1 {
                    added.stored += 1;
                } else if known.query_row(row, |row| row.get(0)).map_err(failed)? {
                    added.known += 1;
                } else {
                    return Err(SalesError::Conflict { line });
                }
            }
        }
        step.commit().map_err(failed)?;
        Ok(added)
    }
}

fn connect(path: &Path, writes: bool) -> Result<Connection, SalesError> {
    if writes {
        // A new one is its owner's alone, as is what SQLite makes beside it. If this fails, opening it tells why.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).ok();
    }
    let create = if writes { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| of(path, &error))?;
    let set_up = || {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "cache_size", -16_384)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        if !writes {
            connection.pragma_update(None, "query_only", true)?;
        }
        Ok(())
    };
    set_up().map_err(|error| of(path, &error))?;
    Ok(connection)
}

/// Makes the tables of a new file; the id of its data, or nothing if it is another program's.
fn prepare(writer: &mut Connection) -> Result<Option<String>, Error> {
    let marks = |it: &Connection| {
        let mark = |name| it.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok::<_, Error>((mark("application_id")?, mark("user_version")?))
    };
    let is_empty = |it: &Connection| {
        it.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get::<_, bool>(0))
    };
    if marks(writer)? == (0, 0) && is_empty(writer)? {
        writer.pragma_update(None, "journal_mode", "WAL")?;
        let step = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        if is_empty(&step)? {
            step.execute_batch(SCHEMA)?;
            step.execute("INSERT INTO identity VALUES (lower(hex(randomblob(16))))", [])?;
            step.pragma_update(None, "application_id", APPLICATION)?;
            step.pragma_update(None, "user_version", VERSION)?;
        }
        step.commit()?;
    }
    if marks(writer)? != (APPLICATION, VERSION) {
        return Ok(None);
    }
    writer.query_row("SELECT id FROM identity", [], |row| row.get(0)).optional()
}

/// Adds up in 64 bits and, if those are too few, in two halves.
fn scan(reader: &Connection, item: Option<&str>) -> Result<Total, Error> {
    const ONE: &str = "SELECT ifnull(sum(amount), 0) FROM sale";
    const HALVES: &str = "SELECT ifnull(sum(amount >> 32), 0), ifnull(sum(amount & 4294967295), 0) FROM sale";
    let narrow = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(i128::from);
    let halves =
        |row: &rusqlite::Row<'_>| Ok((i128::from(row.get::<_, i64>(0)?) << 32) + i128::from(row.get::<_, i64>(1)?));
    let run = |select: &str, sum: &dyn Fn(&rusqlite::Row<'_>) -> Result<i128, Error>| match item {
        None => reader.prepare_cached(select)?.query_row([], |row| sum(row)),
        Some(item) => reader.prepare_cached(&format!("{select} WHERE item = ?1"))?.query_row([item], |row| sum(row)),
    };
    let minor_units = match run(ONE, &narrow) {
        Err(Error::SqliteFailure(_, Some(why))) if why == "integer overflow" => run(HALVES, &halves)?,
        sum => sum?,
    };
    Ok(Total { minor_units })
}

fn number(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

fn of(path: &Path, error: &Error) -> SalesError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => SalesError::Foreign(path.to_owned()),
        Some(ErrorCode::DatabaseBusy) => SalesError::Busy(path.to_owned()),
        Some(ErrorCode::OperationInterrupted) => SalesError::Unwanted,
        _ => SalesError::File { path: path.to_owned(), why: error.to_string() },
    }
}
