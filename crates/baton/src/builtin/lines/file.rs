//! A file opened behind the lines already read from it, and read to its end.

use std::{
    fmt,
    io::{Error, ErrorKind, SeekFrom},
    path::Path,
};

use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};

use super::cutter::Cursor;
use crate::SourceError;

/// A file and what it is called.
#[derive(Debug)]
pub(super) struct NamedFile {
    pub(super) name: String,
    file: File,
}

impl NamedFile {
    /// Opens the file behind `start`, if it can be the file that `start` is of.
    pub(super) async fn open(path: &Path, start: Cursor) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let unreadable = |error| unreadable(&name, &error);
        let changed = |what: &str| {
            SourceError::until_rewound(format_args!(
                "{name} {what}: it is not the file of which {} lines were read; put that one back, or rewind the source",
                start.lines
            ))
        };
        let mut file = File::open(path).await.map_err(unreadable)?;
        let len = file.metadata().await.map_err(unreadable)?.len();
        if start.offset > len {
            return Err(changed("has become shorter"));
        }
        if let Some(before) = start.offset.checked_sub(1) {
            file.seek(SeekFrom::Start(before)).await.map_err(unreadable)?;
            let end = file.read_u8().await.map_err(unreadable)?;
            // The last line may have no line end, but then nothing follows.
            if end != b'\n' && start.offset < len {
                return Err(changed("has other lines"));
            }
        }
        Ok(Self { name, file })
    }

    /// Reads more; 0 at the end.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> Result<usize, SourceError> {
        self.file.read_buf(into).await.map_err(|error| unreadable(&self.name, &error))
    }
}

/// Why something with a name cannot be read: for good if it is not there, or not for this user.
pub(super) fn unreadable(name: &dyn fmt::Display, error: &Error) -> SourceError {
    let cause = format_args!("cannot read {name}: {error}").to_string();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
            SourceError::for_good(cause)
        }
        _ => SourceError::new(cause),
    }
}
