//! Total sales: how much was sold of an item, or of all, over an embedded database of its own.
//!
//! What is guaranteed:
//!
//! * **Sums are exact.** Amounts are integers of hundredths; a sum is wider than anything that can be stored.
//! * **A total is a scan of all rows** within one snapshot, as they come from the file. There is no index to answer from:
//!   this is the expensive computation that [`cache`](crate::cache) is made for.
//! * **All or nothing.** Sales that are added together are stored together or not at all, and durably when it is said so. A
//!   transaction exists once: adding the same again changes nothing, adding another under its id is refused.
//! * **Any item is just an item**, whatever it is called.
//!
//! * **Who adds waits for no input and for nobody long.** What is loaded is read before the file is locked. Writers take
//!   turns, and one who has not had its turn within ten seconds is told so ([`SalesError::Busy`]); totals go on meanwhile, and
//!   however many wait hold one thread.
//!
//! It fails with a [`SalesError`] that says which row or file is meant.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton::builtin::sales::{Sale, Sales};
//! # let folder = tempfile::TempDir::new().unwrap();
//! let sales = Sales::at(folder.path().join("sales.db"));
//! sales.add(vec![(1, Sale::new("t1", "book", "12.50")?), (2, Sale::new("t2", "__proto__", "7")?)]).await?;
//! assert_eq!(sales.total(Some("book")).await?.to_string(), "12.50");
//! assert_eq!(sales.total(None).await?.to_string(), "19.50");
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```

mod amount;
mod aside;
mod file;
mod random;
mod sale;
mod table;
#[cfg(test)]
mod tests;

use std::{
    io::BufRead,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::{
    amount::{Amount, InvalidAmount, Total},
    random::random_sales,
    sale::{InvalidSale, MAX_TEXT_BYTES, Sale, check_item},
    table::Table,
};
use self::{aside::Aside, file::File};
use crate::cache::{CacheKey, Prefix};

/// Why sales could not be read or added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SalesError {
    /// There is no file yet.
    #[error("there are no sales at {}: load some with `baton sales load`, or name another file with --sales", .0.display())]
    Missing(PathBuf),
    /// There is no folder for it.
    #[error("there is no folder {} for the sales {}: make it, or name another file with --sales", folder.display(), file.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The file's name.
        file: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a file of sales: name another with --sales", .0.display())]
    Foreign(PathBuf),
    /// The file cannot be used.
    #[error("cannot use the sales at {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Another writes for longer than this one waits. Nothing was stored.
    #[error("the sales at {} are being written by another, nothing was stored: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// A row is no sale. Nothing was stored.
    #[error("line {line}: {why}; nothing was stored")]
    Row {
        /// The line it begins in, from 1.
        line: u64,
        /// Why.
        why: String,
    },
    /// The id of a row is that of another sale. Nothing was stored.
    #[error("line {line}: its transaction_id is known with another item or amount; nothing was stored")]
    Conflict {
        /// The line it begins in, from 1.
        line: u64,
    },
    /// The rows cannot be read. Nothing was stored.
    #[error("cannot read the sales: {0}; nothing was stored")]
    Input(String),
    /// Nobody waited for it any more.
    #[error("no caller waited for the total")]
    Unwanted,
}

/// What adding sales did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Sales that are stored now.
    pub stored: u64,
    /// Sales that were stored before.
    pub known: u64,
}

/// The sales in a file; clones share it. The file is opened when it is first needed, and anew when another has its name.
#[derive(Clone)]
pub struct Sales {
    shared: Arc<SalesState>,
}

/// How often those who only want a key look whether the file still has its name: a look is a call of the system.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long a writer waits for its turn, and for writers of other processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file as it was opened.
struct Open {
    file: Arc<File>,
    /// When it was last seen to have its name still.
    looked: Instant,
}

struct SalesState {
    path: PathBuf,
    open: Mutex<Option<Open>>,
    /// As many totals are computed at once as there are cores; others wait.
    scans: Arc<Semaphore>,
    /// Whose turn it is to write.
    turns: Arc<Semaphore>,
    patience: Duration,
}

impl Sales {
    /// Those in this file, which need not be there.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self::with_patience(path, PATIENCE)
    }

    fn with_patience(path: impl Into<PathBuf>, patience: Duration) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (scans, turns) = (Arc::new(Semaphore::new(cores)), Arc::new(Semaphore::new(1)));
        Self { shared: Arc::new(SalesState { path: path.into(), open: Mutex::default(), scans, turns, patience }) }
    }

    /// Those of this machine's user, in the folder of the default store; nothing without a home.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        crate::settings::state_folder().map(|folder| Self::at(folder.join("sales.db")))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Whether there is a file, and if not whether there may be one: nothing is opened or made.
    ///
    /// # Errors
    /// [`SalesError::Missing`] if there is none yet, [`SalesError::Folder`] if none can be made.
    pub fn look(&self) -> Result<(), SalesError> {
        let path = self.path();
        check_folder(path)?;
        if path.exists() { Ok(()) } else { Err(SalesError::Missing(path.to_owned())) }
    }

    /// Under what a total is kept in a [`Cache`](crate::cache::Cache), as far as the file has been opened and still has its
    /// name: the random id of its data is part of it.
    #[must_use]
    pub fn known_key(&self, item: Option<&str>) -> Option<CacheKey> {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { file, looked } = open.as_mut()?;
        if looked.elapsed() >= LOOK_AGAIN {
            if !file.is_current() {
                return None;
            }
            *looked = Instant::now();
        }
        Some(file.keys.of(item))
    }

    /// The same, of the file as it is now.
    ///
    /// # Errors
    /// [`SalesError::Missing`], or that the file cannot be used.
    pub async fn key(&self, item: Option<&str>) -> Result<CacheKey, SalesError> {
        let file = self.blocking(|shared| shared.file(false)).await?;
        Ok(file.keys.of(item))
    }

    /// All totals of the file as it is now: whoever adds sales has them forgotten.
    ///
    /// # Errors
    /// As [`Sales::key`].
    pub async fn prefix(&self) -> Result<Prefix, SalesError> {
        let file = self.blocking(|shared| shared.file(false)).await?;
        Ok(file.keys.all_of_them.clone())
    }

    /// The sum over all sales, or over those of one item.
    ///
    /// # Errors
    /// [`SalesError::Missing`], or that the file cannot be used.
    ///
    /// # Cancel safety
    /// The scan ends soon after the future is dropped.
    pub async fn total(&self, item: Option<&str>) -> Result<Total, SalesError> {
        let Ok(permit) = Arc::clone(&self.shared.scans).acquire_owned().await else { return Err(SalesError::Unwanted) };
        let unwanted = Unwanted::default();
        let (flag, item) = (Arc::clone(&unwanted.0), item.map(str::to_owned));
        self.blocking(move |shared| {
            let total = shared.file(false)?.total(item.as_deref(), &flag);
            drop(permit);
            total
        })
        .await
    }

    /// Adds sales, each with its line.
    ///
    /// # Errors
    /// [`SalesError`]; nothing was stored then.
    ///
    /// # Cancel safety
    /// They may be added all the same.
    pub async fn add(&self, sales: Vec<(u64, Sale)>) -> Result<Added, SalesError> {
        self.write(|file, by| file.add(by, sales.into_iter().map(Ok))).await
    }

    /// Adds the sales of a text with the header `transaction_id,item,amount`. All of it is read first; others can write
    /// meanwhile.
    ///
    /// # Errors
    /// [`SalesError`]; nothing was stored then.
    ///
    /// # Cancel safety
    /// They may be added all the same.
    pub async fn load(&self, table: impl BufRead + Send + 'static) -> Result<Added, SalesError> {
        let aside = self.blocking(|shared| {
            // A file that cannot be used is told before anything is read.
            shared.file(true)?;
            Aside::read(Table::new(table))
        });
        let aside = aside.await?;
        self.write(move |file, by| aside.give(|sales| file.add(by, sales))).await
    }

    /// Writes in its turn; both are waited for no longer than the patience.
    async fn write(
        &self, write: impl FnOnce(&File, Instant) -> Result<Added, SalesError> + Send + 'static,
    ) -> Result<Added, SalesError> {
        let by = Instant::now() + self.shared.patience;
        let turn = self.turn().await?;
        self.blocking(move |shared| {
            let added = write(&*shared.file(true)?, by);
            drop(turn);
            added
        })
        .await
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, SalesError> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned();
        let turn = tokio::time::timeout(self.shared.patience, turn).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| SalesError::Busy(self.shared.path.clone()))
    }

    async fn blocking<T: Send + 'static>(
        &self, work: impl FnOnce(&SalesState) -> Result<T, SalesError> + Send + 'static,
    ) -> Result<T, SalesError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(SalesError::File { path: self.shared.path.clone(), why: error.to_string() }))
    }
}

impl SalesState {
    /// The file that has the name now.
    fn file(&self, create: bool) -> Result<Arc<File>, SalesError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Open { file, .. }) = open.as_ref().filter(|open| open.file.is_current()) {
            return Ok(Arc::clone(file));
        }
        *open = None;
        if create {
            make_folder(&self.path);
            check_folder(&self.path)?;
        }
        let file = Arc::new(File::open(&self.path, create)?);
        *open = Some(Open { file: Arc::clone(&file), looked: Instant::now() });
        Ok(file)
    }
}

/// The folder of a file, if it is the user's own one, which is made.
fn own_folder(path: &Path) -> Option<&Path> {
    let own = crate::settings::state_folder();
    path.parent().filter(|folder| own.as_deref() == Some(*folder))
}

/// Makes the folder of the user's own file. What could not be made is told by the file.
fn make_folder(path: &Path) {
    if let Some(own) = own_folder(path) {
        crate::settings::make_folder(own).ok();
    }
}

/// Refuses a file in a folder that is not there, unless that is the user's own one.
fn check_folder(path: &Path) -> Result<(), SalesError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
    match folder.filter(|_| own_folder(path).is_none()) {
        Some(folder) => {
            let file = path.file_name().map(PathBuf::from).unwrap_or_default();
            Err(SalesError::Folder { folder: folder.to_owned(), file })
        }
        None => Ok(()),
    }
}

/// Keys of totals, made once but for the item: a hit pays for them.
struct Keys {
    all: CacheKey,
    items: CacheKey,
    all_of_them: Prefix,
}

impl Keys {
    fn new(id: &str) -> Self {
        let data = CacheKey::new("sales").part(id);
        Self { all: data.part("all"), items: data.part("item"), all_of_them: Prefix::new("sales").part(id) }
    }

    fn of(&self, item: Option<&str>) -> CacheKey {
        item.map_or_else(|| self.all.clone(), |item| self.items.part(item))
    }
}

/// Tells a scan that nobody waits for it, once it is dropped.
#[derive(Default)]
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
