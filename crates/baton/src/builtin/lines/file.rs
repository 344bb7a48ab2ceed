//! A file that is opened behind the lines already read and is read to its end.
//!
//! The cursor holds a digest of the first and the last bytes of the part that was read. It detects a file that was replaced or
//! overwritten. Changes between those bytes are not detected.

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
use crate::{SourceError, message::Digest};

/// Bytes at each edge of the part that was read by which a file is recognised.
const EDGE: usize = 1024;

/// A file and its name.
#[derive(Debug)]
pub(super) struct NamedFile {
    pub(super) name: String,
    file: File,
    edges: Edges,
}

/// The first and the last bytes of the part of a file that was read.
#[derive(Debug, Default)]
struct Edges {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Edges {
    fn add(&mut self, read: &[u8]) {
        let missing = EDGE.saturating_sub(self.first.len());
        self.first.extend(read.iter().take(missing));
        let kept = EDGE.saturating_sub(read.len()).min(self.last.len());
        self.last.drain(..self.last.len() - kept);
        self.last.extend(read.iter().skip(read.len().saturating_sub(EDGE)));
    }

    fn digest(&self) -> u32 {
        let text = Digest::of(&self.first).then(&self.last).to_string();
        text.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }
}

/// The result of opening a file at a cursor.
pub(super) struct Opened {
    pub(super) file: NamedFile,
    /// The position of the file.
    pub(super) at: Cursor,
    /// Bytes after that position.
    pub(super) left: u64,
}

impl NamedFile {
    /// Opens the file behind `start`; fails if it is not the file that `start` belongs to.
    pub(super) async fn open(path: &Path, start: Cursor) -> Result<Opened, SourceError> {
        let name = path.display().to_string();
        let unreadable = |error| unreadable(&name, &error);
        let changed = |what: &str| {
            SourceError::until_rewound(format_args!(
                "{name} {what}: it is not the file of which {} line{} read; put that one back, or rewind the source",
                start.lines,
                if start.lines == 1 { " was" } else { "s were" }
            ))
        };
        let mut file = File::open(path).await.map_err(unreadable)?;
        let len = file.metadata().await.map_err(unreadable)?.len();
        if start.offset > len {
            return Err(changed("has become shorter"));
        }
        let mut edges = Edges::default();
        let edge = usize::try_from(start.offset).unwrap_or(EDGE).min(EDGE);
        edges.first.resize(edge, 0);
        file.read_exact(&mut edges.first).await.map_err(unreadable)?;
        file.seek(SeekFrom::Start(start.offset - edge as u64)).await.map_err(unreadable)?;
        edges.last.resize(edge, 0);
        file.read_exact(&mut edges.last).await.map_err(unreadable)?;
        // Cursors of former releases have no digest.
        if start.head.is_some_and(|before| before != edges.digest()) {
            return Err(changed("has other lines"));
        }
        let mut at = start;
        if edges.last.last().is_some_and(|byte| *byte != b'\n') && start.offset < len {
            // The last line was taken without a line end. Only its line end may have come since.
            let mut next = Vec::new();
            (&mut file).take(2).read_to_end(&mut next).await.map_err(unreadable)?;
            let end = match next.as_slice() {
                [b'\n', ..] => 1,
                [b'\r', b'\n'] => 2,
                _ if start.head.is_none() => return Err(changed("has other lines")),
                _ => {
                    return Err(SourceError::until_rewound(format_args!(
                        "line {} of {name} was read when it had no line end, and has been continued since; undo that, \
                         or rewind the source",
                        start.lines
                    )));
                }
            };
            edges.add(next.get(..end).unwrap_or_default());
            at.offset += end as u64;
            file.seek(SeekFrom::Start(at.offset)).await.map_err(unreadable)?;
        }
        Ok(Opened { file: Self { name, file, edges }, at, left: len.saturating_sub(at.offset) })
    }

    /// Reads more; 0 at the end.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> Result<usize, SourceError> {
        self.file.read_buf(into).await.map_err(|error| unreadable(&self.name, &error))
    }

    /// Adds the next bytes that were cut into lines to the digest.
    pub(super) fn note(&mut self, read: &[u8]) {
        self.edges.add(read);
    }

    /// The digest of all bytes that were noted.
    pub(super) fn digest(&self) -> u32 {
        self.edges.digest()
    }
}

/// The error for a path that cannot be read: for good if it is missing or this user may not read it.
pub(super) fn unreadable(name: &dyn fmt::Display, error: &Error) -> SourceError {
    let cause = format_args!("cannot read {name}: {error}").to_string();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
            SourceError::for_good(cause)
        }
        _ => SourceError::new(cause),
    }
}
