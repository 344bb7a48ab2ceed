//! The files that take a name one after the other, each opened when it is noticed and kept in order.
//!
//! The name is looked at by a task of its own, so that it is watched as well while much is read, and while nothing is
//! because the queue is full. What has the name for less than [`LOOK_EVERY`] may not be noticed; nor is what takes it
//! while [`MAX_WAITING`] files wait to be read.

use std::{
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{fs::File, sync::mpsc, task::JoinSet, time::Instant};

use super::file::unreadable;
use crate::SourceError;

/// How often it is looked at what has the name.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// How long what has the name may be unreadable: a new file may get its owner and its rights only after its name.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most files kept open that nobody has read yet.
const MAX_WAITING: usize = 64;

/// A file that was found under the name.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) file: File,
    /// Since when it is known to have taken the name.
    pub(super) noticed: Instant,
    /// Device and number. They are its own as long as it is open.
    identity: (u64, u64),
}

impl FoundFile {
    /// Opens what has the name now. While nothing has it, there is hope.
    pub(super) async fn under(path: &Path) -> Result<Self, SourceError> {
        let name = path.display();
        let opened = async {
            // Looked at before it is opened: opening a pipe waits for its writer.
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

/// Those that have taken the name since, in order.
#[derive(Debug)]
pub(super) struct Successors {
    found: mpsc::Receiver<Result<FoundFile, SourceError>>,
    next: Option<FoundFile>,
    /// Ends with this.
    _watch: JoinSet<()>,
}

impl Successors {
    /// Watches the name from now on; `first` has it, or had it a moment ago.
    pub(super) fn of(path: &Path, first: &FoundFile) -> Self {
        let (tell, found) = mpsc::channel(MAX_WAITING);
        let watch = JoinSet::from_iter([watch(path.to_owned(), first.identity, tell)]);
        Self { found, next: None, _watch: watch }
    }

    /// The next one, noticed by now; it stays there until it is taken.
    ///
    /// # Errors
    /// What has the name cannot be read, and all before it were taken.
    pub(super) fn next(&mut self) -> Result<Option<&FoundFile>, SourceError> {
        if self.next.is_none() {
            self.next = self.found.try_recv().ok().transpose()?;
        }
        Ok(self.next.as_ref())
    }

    /// Takes it.
    pub(super) const fn take(&mut self) -> Option<FoundFile> {
        self.next.take()
    }
}

/// Tells of each file that takes the name, and at last of one that stays unreadable.
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
                    // Whether it is heard or not: it was the last word.
                    tell.send(Err(error)).await.ok();
                    return;
                }
                Ok(())
            }
            // Nothing has the name, for a moment or for long.
            Err(_) => Ok(()),
        };
        if told.is_err() {
            return;
        }
    }
}
