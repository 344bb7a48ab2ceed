//! Room kept for what must always work: stopping, settling, destroying, on a disk that is full.
//!
//! **Invariant.** What brings new bodies (pushes, submits, settles with follow-ups or results) is carried out only while
//! the reserve is there and the disk has room for it beside that, in the log and in the file. Everything else may have
//! the reserve: when the disk has no room for it, the reserve is given up and the call is made again. It is made anew
//! by the first call with new bodies that finds room for both; until then these are refused with
//! [`StoreError::NoRoom`], which sources and pushers wait out.
//!
//! That is looked at in every transaction with new bodies, by two system calls: other programs fill the disk too.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use super::{
    file::OpenFile,
    location::{io_error, private, sidecar},
};
use crate::store::StoreError;

/// As much as the log and the file grow by, at most, before the log is copied back.
const SIZE: u64 = 8 << 20;
/// What is left over beside the bodies themselves: indexes, spans, rounding.
const MARGIN: u64 = 1 << 20;
const PAGE: u64 = 4_096;

/// The reserve of one store: a file beside it.
pub(super) struct Reserve(PathBuf);

impl Reserve {
    pub(super) fn of(path: &Path) -> Self {
        Self(sidecar(path, "-reserve"))
    }

    /// Whether there is one.
    fn is_there(&self) -> bool {
        fs::metadata(&self.0).is_ok_and(|found| found.len() >= SIZE)
    }

    /// Gives it up; whether there was anything to give.
    pub(super) fn give_up(&self) -> bool {
        // One that cannot be removed is of no use.
        fs::remove_file(&self.0).is_ok()
    }

    /// Makes it.
    fn make(&self) -> io::Result<()> {
        let file = private(OpenOptions::new().create(true).truncate(false).write(true)).open(&self.0)?;
        let made = fill(&file);
        if made.is_err() {
            fs::remove_file(&self.0)?;
        }
        made
    }

    /// Refuses new bodies of this size if they would need the reserve, or if there is none and none can be made.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`].
    pub(super) fn admit(&self, file: &OpenFile, bytes: usize) -> Result<(), StoreError> {
        let free = free(file.path()).map_err(|error| io_error(file.path(), &error))?;
        let there = self.is_there();
        let beside = if there { 0 } else { SIZE };
        if free < most(file, bytes as u64).saturating_add(beside)
            && free < need(file, bytes as u64)?.saturating_add(beside)
        {
            let path = file.path().display();
            return Err(StoreError::NoRoom(format!(
                "the disk of {path} is full but for what stopping and settling need: free some room"
            )));
        }
        if there { Ok(()) } else { self.make().map_err(|error| io_error(file.path(), &error)) }
    }
}

/// The most that new bodies of this size can need, told without looking at anything: where that is free, and it nearly
/// always is, nothing else has to be asked.
fn most(file: &OpenFile, bytes: u64) -> u64 {
    in_log(file, bytes).saturating_mul(2).saturating_add(MARGIN)
}

/// The log with new bodies of this size.
fn in_log(file: &OpenFile, bytes: u64) -> u64 {
    (file.log_pages() as u64).saturating_mul(PAGE).saturating_add(bytes)
}

/// What the disk must have for new bodies of this size: once in the log, and, when that is copied back, in the file.
fn need(file: &OpenFile, bytes: u64) -> Result<u64, StoreError> {
    let in_log = in_log(file, bytes);
    let log = fs::metadata(sidecar(file.path(), "-wal")).map_or(0, |log| log.len());
    let unused: u32 = file.db.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let in_file = in_log.saturating_sub(u64::from(unused) * PAGE);
    Ok(in_log.saturating_sub(log).saturating_add(in_file).saturating_add(MARGIN))
}

#[cfg(unix)]
fn free(path: &Path) -> io::Result<u64> {
    let folder = path.parent().unwrap_or(path);
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Not known: the disk itself says when it is full.
#[cfg(not(unix))]
fn free(_: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

/// Gives the file its room: a hole would have none.
fn fill(file: &fs::File) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, SIZE) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        made => return Ok(made?),
    }
    let zeros = [0; 64 << 10];
    let mut file = file;
    for _ in 0..SIZE / zeros.len() as u64 {
        io::Write::write_all(&mut file, &zeros)?;
    }
    file.sync_all()
}
