//! Reads and replaces the file of tokens. Only regular files are used, and a reported change survives a power failure.
//!
//! A change takes three steps: it writes the new text under another name and syncs it, renames it, and syncs the folder.
//! Before the rename the former file is in force; after the last step the new one is.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use super::TokenError;

/// The writing steps, so that tests can observe and fail them.
pub(super) trait Disk {
    /// Writes a file that is not there, and waits until it is on disk.
    fn write(&self, path: &Path, text: &[u8]) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Waits until the names in a folder are on disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct System;

impl Disk for System {
    fn write(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text)?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// A path with a longer name.
pub(super) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(end);
    PathBuf::from(name)
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the folder of a file, with those above it that are missing.
pub(super) fn make_folder(disk: &impl Disk, path: &Path) -> io::Result<()> {
    let wanted = folder(path);
    let missing: Vec<&Path> = wanted.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists()).collect();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(wanted)?;
    missing.into_iter().try_for_each(|made| disk.sync_folder(folder(made)))
}

/// Opens a file for reading, without waiting for a peer at its other end; nothing if it is not there.
pub(super) fn open_to_read(path: &Path) -> Result<Option<File>, TokenError> {
    match open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => regular(path, File::from(file)).map(Some),
        Err(rustix::io::Errno::NOENT) => match dangling(path) {
            Some(link) => Err(TokenError::Dangling { path: link.to_owned() }),
            None => Ok(None),
        },
        Err(error) => Err(failed(path, error.into())),
    }
}

/// The link that leads nowhere on the way to a file. Its target may be away for a while, so the file is not taken for one
/// that never was.
fn dangling(path: &Path) -> Option<&Path> {
    path.ancestors().find(|it| it.is_symlink() && fs::metadata(it).is_err())
}

/// How long a change waits for the lock, and how often it tries.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// Takes the lock that every change of this file needs. A stopped process may hold it, so the wait has an end.
pub(super) fn lock(path: &Path) -> Result<File, TokenError> {
    let path = &with_end(path, ".lock");
    refuse_link(path)?;
    // Nothing is written to it, and nothing that was there before is cut off.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| failed(path, error.into()))?;
    let file = regular(path, File::from(file))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(AGAIN),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(TokenError::Locked { path: path.to_owned() }),
            Err(error) => return Err(failed(path, error.into())),
        }
    }
}

/// Refuses a link: a change would take its place and leave the file that it leads to as it is.
pub(super) fn refuse_link(path: &Path) -> Result<(), TokenError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(TokenError::NotRegular { path: path.to_owned(), what: "a symbolic link" })
        }
        _ => Ok(()),
    }
}

fn regular(path: &Path, file: File) -> Result<File, TokenError> {
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err(TokenError::NotRegular { path: path.to_owned(), what: "not a regular file" }),
        Err(error) => Err(failed(path, error)),
    }
}

/// The next text of a file, on disk next to it and not in force yet.
#[derive(Debug)]
pub(super) struct Staged {
    path: PathBuf,
    next: PathBuf,
}

impl Staged {
    /// Writes it. The caller has the lock.
    pub(super) fn new(disk: &impl Disk, path: &Path, text: &[u8]) -> Result<Self, TokenError> {
        let next = with_end(path, ".new");
        // A process that was killed may have left one.
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&next, error)),
            _ => {}
        }
        disk.write(&next, text).map_err(|error| failed(&next, error))?;
        Ok(Self { path: path.to_owned(), next })
    }

    /// Puts it in force.
    pub(super) fn publish(self, disk: &impl Disk) -> Result<(), TokenError> {
        disk.rename(&self.next, &self.path).map_err(|error| failed(&self.path, error))?;
        let unsynced = |error| TokenError::Unsynced { path: self.path.clone(), error };
        disk.sync_folder(folder(&self.path)).map_err(unsynced)
    }
}

pub(super) fn failed(path: &Path, error: io::Error) -> TokenError {
    TokenError::File { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Notes the steps, and fails the one that is named.
    #[derive(Default)]
    struct Noted {
        steps: RefCell<Vec<&'static str>>,
        fails: &'static str,
    }

    impl Noted {
        fn step(&self, step: &'static str, made: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
            self.steps.borrow_mut().push(step);
            if step == self.fails { Err(io::ErrorKind::StorageFull.into()) } else { made() }
        }
    }

    impl Disk for Noted {
        fn write(&self, path: &Path, text: &[u8]) -> io::Result<()> {
            self.step("write", || System.write(path, text))
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step("rename", || System.rename(from, to))
        }

        fn sync_folder(&self, folder: &Path) -> io::Result<()> {
            self.step("sync folder", || System.sync_folder(folder))
        }
    }

    #[test]
    fn the_former_text_is_in_force_until_the_rename_and_the_new_one_is_told_when_the_folder_is_on_disk() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a/b/file");
        let disk = Noted::default();
        make_folder(&disk, &path).unwrap();
        assert_eq!(disk.steps.take(), ["sync folder"; 2], "for each folder that was made");
        make_folder(&disk, &path).unwrap();
        let replace = |disk: &Noted, text: &[u8]| Staged::new(disk, &path, text)?.publish(disk);
        replace(&disk, b"former").unwrap();
        assert_eq!(disk.steps.take(), ["write", "rename", "sync folder"]);
        for (fails, left) in [("write", "former"), ("rename", "former"), ("sync folder", "next")] {
            replace(&disk, b"former").unwrap();
            let failing = Noted { fails, ..Noted::default() };
            let error = replace(&failing, b"next").unwrap_err();
            assert_eq!(matches!(error, TokenError::Unsynced { .. }), fails == "sync folder", "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), left, "{fails}");
        }
    }
}
