//! A file that grows and is read for ever: `tail -F` with a cursor.
//!
//! At the end of the file it is polled. When another file takes its name, the old file is read for one second more, since
//! its writer may still hold it. Then the new file is read from its start, even if it has lost the name by then. A file that
//! was truncated is also read from its start. The cursor holds a digest of the file's first bytes: a successor reads any
//! other file under the name from its start. Lines added to a file that was moved away while no node read it are missed.

use std::{io::ErrorKind, io::SeekFrom, path::Path, time::Duration};

use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};

use super::{
    cutter::Cursor,
    file::unreadable,
    rotated::{FoundFile, Successors},
};
use crate::{SourceError, message::Digest};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a file that has lost its name is read on.
const AFTER_A_MOVE: Duration = Duration::from_secs(1);
/// Bytes at its start that a file is recognised by.
const HEAD: usize = 1024;

/// The outcome of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// More bytes.
    More,
    /// The file has ended. The next read begins another file, or this one's new content.
    Replaced,
}

/// The file under the name, or the one that had it until a moment ago.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) name: String,
    file: File,
    /// Bytes read.
    position: u64,
    /// The first of them, at most [`HEAD`].
    head: Vec<u8>,
    /// Files that have taken its name since.
    successors: Successors,
}

impl Followed {
    /// Opens the file under the name: behind `start` if the cursor belongs to it, otherwise at its start.
    pub(super) async fn open(path: &Path, start: Cursor) -> Result<(Self, Cursor), SourceError> {
        let found = FoundFile::under(path).await?;
        let successors = Successors::of(path, &found);
        let name = path.display().to_string();
        let mut followed = Self { name, file: found.file, position: 0, head: Vec::new(), successors };
        let unreadable = |name: &str, error| unreadable(&name, &error);
        let mut head = vec![0; usize::try_from(start.offset).unwrap_or(HEAD).min(HEAD)];
        let is_the_same = match followed.file.read_exact(&mut head).await {
            Ok(_) => start.head == Some(digest(&head)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(unreadable(&followed.name, error)),
        };
        let len = followed.file.metadata().await.map_err(|error| unreadable(&followed.name, error))?.len();
        let offset = if is_the_same && start.offset <= len { start.offset } else { 0 };
        followed.file.seek(SeekFrom::Start(offset)).await.map_err(|error| unreadable(&followed.name, error))?;
        followed.position = offset;
        followed.head = if offset == 0 { Vec::new() } else { head };
        Ok((followed, Cursor { offset, ..start }))
    }

    /// Waits for more bytes.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> Result<Growth, SourceError> {
        loop {
            // Checked before the read, so that bytes written in time are read.
            let is_over = self.successors.next()?.is_some_and(|next| next.noticed.elapsed() >= AFTER_A_MOVE);
            let before = into.len();
            let read = self.file.read_buf(into).await.map_err(|error| unreadable(&self.name, &error))?;
            if read > 0 {
                let missing = HEAD.saturating_sub(self.head.len());
                self.head.extend(into.iter().skip(before).take(missing));
                self.position += read as u64;
                return Ok(Growth::More);
            }
            if is_over && let Some(next) = self.successors.take() {
                self.file = next.file;
                self.begin();
                return Ok(Growth::Replaced);
            }
            let len = self.file.metadata().await.map_err(|error| unreadable(&self.name, &error))?.len();
            if len < self.position {
                self.file.rewind().await.map_err(|error| unreadable(&self.name, &error))?;
                self.begin();
                return Ok(Growth::Replaced);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Resets the position for the next content.
    fn begin(&mut self) {
        self.position = 0;
        self.head.clear();
    }

    /// The digest by which the file is recognised, with `offset` bytes read.
    pub(super) fn head(&self, offset: u64) -> u32 {
        let upto = usize::try_from(offset).unwrap_or(HEAD).min(self.head.len());
        digest(self.head.get(..upto).unwrap_or_default())
    }
}

fn digest(head: &[u8]) -> u32 {
    let text = Digest::of(head).to_string();
    text.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
