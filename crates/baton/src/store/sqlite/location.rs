//! Where a store is: its path, what lies beside it, and what this process may do there.
//!
//! Nothing here opens the store's file: that it is missing, or may not be read, is asked of the file system. What it
//! refuses is told to people with what they can do about it.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::presence_lock::may_not;
use crate::store::StoreError;

/// A file beside the store's.
pub(super) fn sidecar(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The most links that follow each other, as for the system.
const MAX_LINKS: u32 = 40;

/// The path with links followed and, where the file does not exist, those of its folder. A link to a file that is not there
/// leads to where that would be: what lies beside it there tells whether it ever was.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let in_folder = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
        let place = in_folder().unwrap_or_else(|| path.clone());
        match (fs::read_link(&path), path.parent()) {
            (Ok(target), Some(folder)) => path = folder.join(target),
            _ => return place,
        }
    }
    path
}

/// Whether there is no file, or one in which nothing was ever written.
pub(super) fn is_missing(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(found.len() == 0),
        Ok(_) => Err(unfit(path, "is not a file: choose another path")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(io_error(path, &error)),
    }
}

/// Refuses to make a store in a folder that is not there.
pub(super) fn check_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|folder| !folder.exists()) {
        Some(folder) => {
            let (folder, file) = (folder.display(), path.file_name().unwrap_or_default().display());
            let why = format!("there is no folder {folder} for {file}: make it, or name another store");
            Err(StoreError::Unfit(why))
        }
        None => Ok(()),
    }
}

/// Makes what is created its owner's alone.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

pub(super) fn unfit(path: &Path, why: &str) -> StoreError {
    StoreError::Unfit(format!("{} {why}", path.display()))
}

/// What a person can do who may not read a file of the store.
pub(super) fn denied(path: &Path) -> StoreError {
    unfit(path, "may not be read: permission denied; become its owner, or have its permissions changed")
}

/// Whether this process may read the file, asked without opening it.
pub(super) fn may_read(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK) != Err(rustix::io::Errno::ACCESS)
}

pub(super) fn io_error(path: &Path, error: &std::io::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::NoRoom(format!("{text}: free some room")),
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => StoreError::Unreachable(text),
        _ if may_not(error) => StoreError::Unfit(format!("{text}: check its permissions and those of its folder")),
        _ => StoreError::Unfit(format!("{text}: choose another path or check its permissions")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_leads_to_where_its_file_would_be() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(folder.path()).unwrap().join(name);
        fs::create_dir(at("real")).unwrap();
        symlink("real/x.db", at("link")).unwrap();
        symlink(at("link"), at("second")).unwrap();
        symlink("away/x.db", at("nowhere")).unwrap();
        symlink("round", at("round")).unwrap();
        assert_eq!([real_path(&at("link")), real_path(&at("second"))], [at("real/x.db"), at("real/x.db")]);
        assert_eq!(real_path(&at("nowhere")), at("away/x.db"));
        assert!(real_path(&at("round")).ends_with("round"));
        assert_eq!(real_path(&at("none")), at("none"));
        fs::write(at("real/x.db"), "1").unwrap();
        assert_eq!(real_path(&at("second")), at("real/x.db"));
    }
}
