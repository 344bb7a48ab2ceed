//! The mark in a store's file: which period of use it is in.
//!
//! A *period* lasts from the first writer that opens a file without a log to the last process that closes it in order.
//! Its random id stands in the file itself, not merely in the log: it is copied there before the period's first write
//! and struck out, in the same way, at its end. So the file alone tells whether a log may exist for it, and a copy
//! that was made after a clean end says that none does.
//!
//! The mark is read past the log and without locks. Only pages of the mark's own table and of the schema are read,
//! which nothing else changes.

use std::{fmt::Write as _, path::Path};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::message::SessionId;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS log (at INTEGER PRIMARY KEY CHECK (at = 0), span TEXT) STRICT";

/// What a file says about its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: it is from a time before marks.
    Absent,
    /// It was closed in order: whatever log lies beside it is another file's.
    Closed,
    /// It is or was in use, in this period.
    Open(String),
}

impl Mark {
    /// The mark in one word.
    pub(super) fn word(&self) -> String {
        match self {
            Self::Absent | Self::Closed => "-".to_owned(),
            Self::Open(period) => period.clone(),
        }
    }
}

/// An id for a period.
pub(super) fn new_span() -> String {
    SessionId::random().to_string()
}

/// The mark in the file at `path`, whatever its log holds.
pub(super) fn read(path: &Path) -> rusqlite::Result<Mark> {
    let db = bare(path)?;
    let known = db
        .prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'log'")?
        .query_row([], |row| row.get::<_, i64>(0))?;
    if known == 0 {
        return Ok(Mark::Absent);
    }
    let mut query = db.prepare("SELECT span FROM log")?;
    let mut rows = query.query([])?;
    Ok(match rows.next()? {
        Some(row) => row.get::<_, Option<String>>(0)?.map_or(Mark::Closed, Mark::Open),
        None => Mark::Closed,
    })
}

/// Writes the mark in a transaction of its own; it is in the file once the log was copied back.
pub(super) fn write(db: &Connection, period: Option<&str>) -> rusqlite::Result<()> {
    let transaction = db.unchecked_transaction()?;
    db.execute(TABLE, [])?;
    db.execute("INSERT INTO log (at, span) VALUES (0, ?1) ON CONFLICT (at) DO UPDATE SET span = ?1", [period])?;
    transaction.commit()
}

/// The file alone: without its log, without locks, never written. One that died while it copied the log back may have
/// left a head that speaks of more pages than have come yet; the mark is not among those, since it changes only while the
/// log is empty.
pub(super) fn bare(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => write!(uri, "%{byte:02x}").unwrap_or_default(),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(uri, flags)?;
    // Makes SQLite go by the pages that are there; nothing can be written here.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    Ok(db)
}
