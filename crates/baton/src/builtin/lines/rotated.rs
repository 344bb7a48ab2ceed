//! The files that take a name one after the other. Each is opened when it is noticed, and their order is kept.
//!
//! A task of its own polls the name. So it is watched while much is read, and also while nothing is read because the queue
//! is full. A file that has the name for less than [`LOOK_EVERY`] may be missed. So is a file that takes it while
//! [`MAX_WAITING`] files wait to be read.

use std::{
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{fs::File, sync::mpsc, task::JoinSet, time::Instant};

use super::file::unreadable;
use crate::SourceError;

/// The interval between two looks at the name.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How long a file may be unreadable: a new file may get its owner and its rights only after its name.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most unread files that are kept open.
const MAX_WAITING: usize = 64;

/// A file that was found under the name.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: File,
    /// When it was first seen under the name.
    pub(super) noticed: Instant,
    /// Device and inode. They stay its own as long as it is open.
    identity: (u64, u64),
}

impl FoundFile {
    /// Opens the file under the name. A missing file is an error that may pass.
    pub(super) async fn under(path: &Path) -> Result<Self, SourceError> {
        let name = path.display();
        let opened = async {
            // Checked before it is opened: opening a pipe waits for its writer.
            if !tokio::fs::metadata(path).await?.is_file() {
                return Ok(None);
            }
            let file = File::open(path).await?;
            let about = file.metadata().await?;
            Ok(Some((file, (about.dev(), about.ino()))))
        };
        let opened: std::io::Result<_> = opened.await;
        match opened {
            Ok(Some((file, identity))) => Ok(Self { file, noticed: Instant::now(), identity }),
            Ok(None) => Err(SourceError::for_good(format_args!("{name} is no regular file, so it cannot be followed"))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(SourceError::new(format_args!("cannot read {name}: {error}")))
            }
            Err(error) => Err(unreadable(&name, &error)),
        }
    }
}

/// The files that have taken the name since, in order.
#[derive(Debug)]
pub(super) struct Successors {
    found: mpsc::Receiver<Result<FoundFile, SourceError>>,
    next: Option<FoundFile>,
    /// The watch ends with this value.
    _watch: JoinSet<()>,
}

impl Successors {
    /// Watches the name from now on; `first` is the file that was found under it.
    pub(super) fn of(path: &Path, first: &FoundFile) -> Self {
        let (tell, found) = mpsc::channel(MAX_WAITING);
        let watch = JoinSet::from_iter([watch(path.to_owned(), first.identity, tell)]);
        Self { found, next: None, _watch: watch }
    }

    /// The next file that was noticed; it stays until it is taken.
    ///
    /// # Errors
    /// The file under the name cannot be read, and all files before it were taken.
    pub(super) fn next(&mut self) -> Result<Option<&FoundFile>, SourceError> {
        if self.next.is_none() {
            self.next = self.found.try_recv().ok().transpose()?;
        }
        Ok(self.next.as_ref())
    }

    /// Takes the next file.
    pub(super) const fn take(&mut self) -> Option<FoundFile> {
        self.next.take()
    }
}

/// Reports each file that takes the name. The last report is of a file that stays unreadable.
async fn watch(path: PathBuf, mut last: (u64, u64), tell: mpsc::Sender<Result<FoundFile, SourceError>>) {
    let mut unreadable: Option<Instant> = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let same = tokio::fs::metadata(&path).await.is_ok_and(|about| (about.dev(), about.ino()) == last);
        let found = if same { Ok(None) } else { FoundFile::under(&path).await.map(Some) };
        let told = match found {
            Ok(found) => {
                unreadable = None;
                match found.filter(|found| found.identity != last) {
                    Some(found) => {
                        last = found.identity;
                        tell.send(Ok(found)).await
                    }
                    None => Ok(()),
                }
            }
            Err(error) if error.is_for_good() => {
                if unreadable.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                    // The last report; without a reader it is not needed.
                    tell.send(Err(error)).await.ok();
                    return;
                }
                Ok(())
            }
            // No file has the name, for a moment or for long.
            Err(_) => Ok(()),
        };
        if told.is_err() {
            return;
        }
    }
}
