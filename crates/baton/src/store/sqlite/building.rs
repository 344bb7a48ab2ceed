//! A new store file: built complete under another name, then renamed, so that nobody ever sees half of one.
//!
//! Done alone inside (see `door`), and only where a former file of that name has left no log (see `absence`).

use std::{
    fs::{self, OpenOptions},
    path::Path,
};

use rusqlite::{Connection, OpenFlags};

use super::{
    absence,
    connection::{APPLICATION, flags},
    location::{io_error, private, sidecar},
};
use crate::{
    message::SessionId,
    store::{FORMAT, StoreError},
};

pub(super) const SCHEMA: &str = include_str!("schema.sql");
/// SQLite's own files beside one of its databases.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Builds an empty store at `path`, where there is none; removes what one that was killed at that has left.
///
/// # Errors
/// [`StoreError::NoRoom`] or [`StoreError::Unfit`], also where a former store is only gone; nothing is left behind then.
pub(super) fn build(path: &Path) -> Result<(), StoreError> {
    match absence::remains(path) {
        Some(why) => Err(StoreError::Unfit(why)),
        None => {
            clear(path)?;
            in_place(path, fill)
        }
    }
}

/// Has a file built under another name and gives it the name `path`, over what may be there; a failure leaves nothing.
///
/// # Errors
/// Those of `build`, and [`StoreError::Unfit`] if the folder cannot be written.
pub(super) fn in_place<T>(path: &Path, build: impl FnOnce(&Path) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let site = sidecar(path, &format!("-{}", SessionId::random()));
    // Made here, so that it is its owner's alone from the beginning; SQLite's files beside it get the same rights.
    let made = private(OpenOptions::new().create_new(true).write(true)).open(&site).map(drop);
    let built = made.map_err(|error| io_error(path, &error)).and_then(|()| build(&site)).and_then(|built| {
        fs::rename(&site, path).map_err(|error| io_error(path, &error))?;
        Ok(built)
    });
    if built.is_err() {
        for suffix in BESIDE {
            remove(&sidecar(&site, suffix))?;
        }
    }
    let built = built?;
    sync_folder(path)?;
    Ok(built)
}

/// Removes what was being built for the name `path` by one that was killed. Alone inside: nobody else builds there.
///
/// # Errors
/// [`StoreError::Unfit`] if the folder cannot be read or written.
pub(super) fn clear(path: &Path) -> Result<(), StoreError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    let is_left = |beside: &str| {
        let number = beside
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.split_at_checked(32));
        number.is_some_and(|(id, kind)| id.parse::<SessionId>().is_ok() && BESIDE.contains(&kind))
    };
    for entry in fs::read_dir(folder).map_err(|error| io_error(folder, &error))? {
        let entry = entry.map_err(|error| io_error(folder, &error))?;
        if entry.file_name().to_str().is_some_and(is_left) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn fill(site: &Path) -> Result<(), StoreError> {
    let db = Connection::open_with_flags(site, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    db.pragma_update(None, "page_size", 4_096)?;
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "application_id", APPLICATION)?;
    db.pragma_update(None, "user_version", FORMAT)?;
    db.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?;
    super::mark::write(&db, None)?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error(path, &error)),
        _ => Ok(()),
    }
}

/// Makes the new name last through a power failure.
pub(super) fn sync_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|_| cfg!(unix)) {
        Some(folder) => {
            fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io_error(folder, &error))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_that_was_killed_was_building_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let id = SessionId::random();
        let (left, journal) = (format!("x.db-{id}"), format!("x.db-{id}-journal"));
        let others =
            ["x.db".to_owned(), "x.db-lock".to_owned(), format!("y.db-{id}"), format!("x.db-{id}-wal.aside-1")];
        for name in others.iter().chain([&left, &journal]) {
            fs::write(at(name), "").expect("a file");
        }
        clear(&at("x.db")).expect("cleared");
        assert!(!at(&left).exists() && !at(&journal).exists());
        assert!(others.iter().all(|name| at(name).exists()));
    }

    /// What is at the front of the file is never moved when pages leave its end: the mark, which is read past the log,
    /// stays where it is.
    #[test]
    fn a_new_file_has_no_free_page_and_can_give_pages_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.db");
        build(&path).expect("a store");
        let db = super::super::mark::bare(&path).expect("the file");
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).expect("a number");
        assert_eq!((number("freelist_count"), number("auto_vacuum")), (0, 2));
    }
}
