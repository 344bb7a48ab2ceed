//! The note beside a store: which period its log belongs to.
//!
//! The mark in the file says which log it needs; the note says which one lies there, by that file's identity. Together
//! they tell a log that was left behind by another file from one that was carried along with it: a log that the note
//! does not speak of came with its file. A note that is lost therefore costs nothing.
//!
//! While the mark changes, the note names the former one and the new one: the log holds nothing then but that change.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
    time::UNIX_EPOCH,
};

use super::{
    location::{private, sidecar},
    mark::Mark,
};

/// Which file it is, whatever its name: a number that is used again after it was removed is told apart by its birth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId {
    device: u64,
    number: u64,
    born: u128,
}

/// What lies beside the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// The marks of the file that the log belongs to: one use_period, but two marks while the mark changes, and none where the
    /// log of the file was found missing.
    pub(super) marks: Vec<String>,
    pub(super) log: Option<FileId>,
    pub(super) memory: Option<FileId>,
}

impl FileId {
    /// Of the file at `path`, if there is one.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let found = fs::metadata(path).ok()?;
        let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Some(Self { device: found.dev(), number: found.ino(), born: born.map_or(0, |born| born.as_nanos()) })
    }

    /// Elsewhere an open file can be neither moved nor removed.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Option<Self> {
        let born = fs::metadata(path).ok()?.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Some(Self { device: 0, number: 0, born: born.map_or(0, |born| born.as_nanos()) })
    }
}

impl Note {
    /// What is true of the store at `path` now, for these marks.
    pub(super) fn now(path: &Path, marks: Vec<String>) -> Self {
        let log = FileId::of(&sidecar(path, "-wal"));
        Self { marks, log, memory: FileId::of(&sidecar(path, "-shm")) }
    }

    /// Says that the file's log is missing: an empty one that comes to be there is not it.
    pub(super) const fn of_lost() -> Self {
        Self { marks: Vec::new(), log: None, memory: None }
    }

    /// Whether the file's log was found missing.
    pub(super) const fn is_of_lost(&self) -> bool {
        self.marks.is_empty()
    }

    /// Whether the mark is not just being changed.
    pub(super) fn is_of_one_span(&self) -> bool {
        self.marks.len() == 1
    }

    /// Whether it names this mark.
    pub(super) fn names(&self, mark: &Mark) -> bool {
        self.marks.contains(&mark.word())
    }

    /// The note of the store at `path`; one that cannot be read counts as none.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(sidecar(path, "-log")).ok()?;
        let mut lines = text.lines();
        let marks = lines.next()?.split_whitespace().map(str::to_owned).collect();
        Some(Self { marks, log: parsed(lines.next()?), memory: parsed(lines.next()?) })
    }

    /// Writes it, whole or not at all, and lastingly: it has to be there before a mark that goes by it.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let (note, fresh) = (sidecar(path, "-log"), sidecar(path, "-log-new"));
        let mut file = private(fs::OpenOptions::new().create(true).truncate(true).write(true)).open(&fresh)?;
        let marks = self.marks.join(" ");
        file.write_all(format!("{marks}\n{}\n{}\n", shown(self.log), shown(self.memory)).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &note)
    }

    /// Removes it.
    pub(super) fn remove(path: &Path) -> io::Result<()> {
        match fs::remove_file(sidecar(path, "-log")) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// How many names the file at `path` has.
#[cfg(unix)]
pub(super) fn names(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| std::os::unix::fs::MetadataExt::nlink(&found))
}

/// Elsewhere it is not asked.
#[cfg(not(unix))]
pub(super) fn names(_: &Path) -> u64 {
    1
}

fn shown(id: Option<FileId>) -> String {
    id.map(|it| format!("{} {} {}", it.device, it.number, it.born)).unwrap_or_default()
}

fn parsed(line: &str) -> Option<FileId> {
    let mut parts = line.split(' ');
    let mut next = || parts.next()?.parse::<u128>().ok();
    let (device, number, born) = (next()?, next()?, next()?);
    Some(FileId { device: u64::try_from(device).ok()?, number: u64::try_from(number).ok()?, born })
}
