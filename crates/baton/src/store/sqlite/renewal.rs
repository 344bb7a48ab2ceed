//! A file of former times written anew, so that free pages can leave it (see `sweep`).
//!
//! Done alone inside (see `door`), on a file whose log has ended: the new file is complete before it takes the place of
//! the old one. Where somebody has the store open, or the disk has no room for two, the file stays as it is.

use std::{path::Path, time::Instant};

use rusqlite::{Connection, OpenFlags};

use super::{
    Site, building,
    connection::flags,
    location::{io_error, is_missing, real_path},
    log,
    mark::{self, Mark},
    open_guard::{let_by, try_hold},
    presence_lock::PresenceLock,
    use_period,
};
use crate::store::StoreError;

/// Writes the file of `site` anew, if it needs that and nobody has it open.
///
/// # Errors
/// [`StoreError::NoRoom`] among others; the file is as it was then.
pub(super) fn renew(site: &Site) -> Result<(), StoreError> {
    let path = real_path(&site.path);
    let door = PresenceLock::of(&path).map_err(|error| io_error(&path, &error))?;
    let Some(door) = door.filter(PresenceLock::is_alone) else { return Ok(()) };
    if is_missing(&path)? {
        return Ok(());
    }
    let begun = Instant::now();
    let _hold = loop {
        if let Some(hold) = try_hold(&path, begun)? {
            break hold;
        }
        let_by(&door)?;
        if !door.is_alone() {
            return Ok(());
        }
    };
    use_period::end(&path)?;
    if log::has_log(&path) || mark::read(&path)? != Mark::Closed {
        return Ok(());
    }
    let former = mark::bare(&path)?;
    if former.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i32>(0))? != 0 {
        return Ok(());
    }
    building::in_place(&path, |fresh| copy(&former, fresh))?;
    site.forget_file();
    Ok(())
}

fn copy(former: &Connection, fresh: &Path) -> Result<(), StoreError> {
    former.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let Some(name) = fresh.to_str() else {
        return Err(StoreError::Unfit(format!("{} is no text: SQLite cannot be told of it", fresh.display())));
    };
    former.execute("VACUUM INTO ?1", [name])?;
    let db = Connection::open_with_flags(fresh, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let found: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(StoreError::Damaged(format!("the new file does not hold together: {found}")));
    }
    db.close().map_err(|(_, error)| error)?;
    let file = std::fs::File::open(fresh).and_then(|file| file.sync_all());
    file.map_err(|error| io_error(fresh, &error))
}
