//! Connections to a store's file, and what its header says.
//!
//! Whether a file is a store is looked at past its log and without being able to change it. No connection copies a log
//! back by itself.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use super::{
    location::{denied, may_read, unfit},
    log, mark,
};
use crate::store::{FORMAT, Refusal, StoreError};

/// Says in the file's header that it is a Baton store: the letters `Batn`.
pub(super) const APPLICATION: i32 = 0x4261_746e;
/// How long SQLite itself waits for a lock before the wait begins anew.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Refuses a file of another format than this release's: a newer release may have taken it over since it was opened.
pub(super) fn check_format(db: &Connection) -> Result<(), StoreError> {
    let found = check_known(db)?;
    if found < FORMAT { Err(Refusal::OlderFormat { found, known: FORMAT }.into()) } else { Ok(()) }
}

/// The format of the file, if it can be known here: older ones can be copied and migrated.
pub(super) fn check_known(db: &Connection) -> Result<u32, StoreError> {
    let found = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > FORMAT { Err(Refusal::NewerFormat { found, known: FORMAT }.into()) } else { Ok(found) }
}

/// Looks at an existing file without being able to change it, and past its log.
pub(super) fn probe(path: &Path) -> Result<(), StoreError> {
    let application = mark::bare(path)
        .and_then(|db| Ok((db.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?, db)));
    let (application, db) = application.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => unfit(path, "is not a Baton store: choose another path"),
        Some(ErrorCode::CannotOpen) if !may_read(path) => denied(path),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            // SQLite's own words name the file by the address that is used here.
            unfit(path, "cannot be opened: choose another path, or check its permissions and those of its folder")
        }
        _ => error.into(),
    })?;
    if application != APPLICATION {
        return Err(unfit(path, "is the database of another program: choose another path"));
    }
    check_known(&db).map(drop)
}

/// A connection that copies nothing back by itself: whose file it is has to be asked first.
pub(super) fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let db = Connection::open_with_flags(path, flags(access))?;
    db.busy_timeout(PATIENCE)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    Ok(db)
}

/// A connection to read with, whatever the rights; and whether it reads the file alone.
pub(super) fn connect_to_read(path: &Path, past_log: bool) -> Result<(Connection, bool), StoreError> {
    let looked = |db: Connection| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map(|()| db);
    let bare = || Ok((mark::bare(path).and_then(looked)?, true));
    if past_log {
        return bare();
    }
    let opened = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|db| Ok(looked(db)?));
    match opened {
        // What SQLite needs beside the file can be neither found nor made.
        Err(StoreError::Unfit(_)) if !log::has_log(path) => bare(),
        opened => Ok((opened?, false)),
    }
}

pub(super) fn flags(flags: OpenFlags) -> OpenFlags {
    flags | OpenFlags::SQLITE_OPEN_NO_MUTEX
}
