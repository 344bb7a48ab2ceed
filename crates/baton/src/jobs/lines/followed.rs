//! A file that grows, read for ever: `tail -F` with a cursor.
//!
//! At its end it is looked at again and again. When another file has taken its name, the old one is read to its end for
//! a second more (its writer may still hold it), and then the new one from its start; one that was cut shorter is read
//! from its start too. A successor recognises the file by its first bytes, whose digest is in the cursor: another file
//! under the name is read from its start. What was added to a file that was moved away while nobody read is not seen.

use std::{
    io::{ErrorKind, SeekFrom},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
    time::Instant,
};

use super::{cutter::Place, file::unreadable};
use crate::{SourceError, message::Digest};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a file that has lost its name is read on.
const AFTER_A_MOVE: Duration = Duration::from_secs(1);
/// Bytes at its start that a file is recognised by.
const HEAD: usize = 1024;

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// More bytes.
    More,
    /// Nothing will follow in this file; the next read is the first of another.
    Replaced,
}

/// The file that has the name now, or had it a moment ago.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) name: String,
    path: PathBuf,
    file: File,
    /// Device and number.
    identity: (u64, u64),
    /// Bytes read.
    position: u64,
    /// The first of them, at most [`HEAD`].
    head: Vec<u8>,
    /// Since when another file has the name.
    moved: Option<Instant>,
}

impl Followed {
    /// Opens what has the name now: behind `place` if that is of this file, else at its start.
    pub(super) async fn open(path: &Path, place: Place) -> Result<(Self, Place), SourceError> {
        let mut followed = Self::start(path).await?;
        let unreadable = |name: &str, error| unreadable(&name, &error);
        let mut head = vec![0; usize::try_from(place.offset).unwrap_or(HEAD).min(HEAD)];
        let is_the_same = match followed.file.read_exact(&mut head).await {
            Ok(_) => place.head == Some(digest(&head)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(unreadable(&followed.name, error)),
        };
        let len = followed.file.metadata().await.map_err(|error| unreadable(&followed.name, error))?.len();
        let offset = if is_the_same && place.offset <= len { place.offset } else { 0 };
        followed.file.seek(SeekFrom::Start(offset)).await.map_err(|error| unreadable(&followed.name, error))?;
        followed.position = offset;
        followed.head = if offset == 0 { Vec::new() } else { head };
        Ok((followed, Place { offset, ..place }))
    }

    /// What has the name now, from its start. While nothing has it, there is hope.
    async fn start(path: &Path) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let opened = async {
            let file = File::open(path).await?;
            let about = file.metadata().await?;
            Ok((file, about))
        };
        let (file, about) = opened.await.map_err(|error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => SourceError::new(format_args!("cannot read {name}: {error}")),
            _ => unreadable(&name, &error),
        })?;
        let identity = (about.dev(), about.ino());
        Ok(Self { name, path: path.to_owned(), file, identity, position: 0, head: Vec::new(), moved: None })
    }

    /// Waits for more.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> Result<Growth, SourceError> {
        loop {
            let before = into.len();
            let read = self.file.read_buf(into).await.map_err(|error| unreadable(&self.name, &error))?;
            if read > 0 {
                let missing = HEAD.saturating_sub(self.head.len());
                self.head.extend(into.iter().skip(before).take(missing));
                self.position += read as u64;
                return Ok(Growth::More);
            }
            if self.is_over().await? {
                match Self::start(&self.path).await {
                    Ok(next) => {
                        *self = next;
                        return Ok(Growth::Replaced);
                    }
                    Err(error) if error.is_for_good() => return Err(error),
                    // Gone again: its name is looked at once more.
                    Err(_) => self.moved = None,
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether nothing will follow in the file, which was read to its end a moment ago.
    async fn is_over(&mut self) -> Result<bool, SourceError> {
        let about = match tokio::fs::metadata(&self.path).await {
            Ok(about) => about,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unreadable(&self.name, &error)),
        };
        if (about.dev(), about.ino()) == self.identity {
            self.moved = None;
            return Ok(about.len() < self.position);
        }
        Ok(self.moved.get_or_insert_with(Instant::now).elapsed() >= AFTER_A_MOVE)
    }

    /// What the file is recognised by, `offset` bytes behind its start.
    pub(super) fn head(&self, offset: u64) -> u32 {
        let upto = usize::try_from(offset).unwrap_or(HEAD).min(self.head.len());
        digest(self.head.get(..upto).unwrap_or_default())
    }
}

fn digest(head: &[u8]) -> u32 {
    let text = Digest::of(head).to_string();
    text.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
