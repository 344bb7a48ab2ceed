//! A store in a file is copied to another, and brought back from there.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::store::{Ear, RestoreError, SqliteStore, StoreError, StoreUrl};

/// A copy that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The store, without its password.
    pub store: String,
    /// The copy.
    pub backup: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The fleets in it.
    pub fleets: u64,
}

/// A store that was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BroughtBack {
    /// What was brought back from where.
    #[serde(flatten)]
    pub copy: BackedUp,
    /// Where the store is that was there before, if there was one.
    pub kept: Option<PathBuf>,
}

/// Why a store was not copied; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// It is in memory.
    #[error("a store in memory cannot be backed up")]
    InMemory,
    /// It is on a server, which has its own means.
    #[error("{0} is backed up by Redis itself, not by baton")]
    OnServer(StoreUrl),
    /// There is a file of that name.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// Somebody has the store open that is to be replaced.
    #[error("the store at {} is open in {who}", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
        /// The processes, for people.
        who: String,
    },
    /// The thread that copies ended.
    #[error("the copy broke off: {0}")]
    BrokeOff(String),
    /// The store or the copy cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RestoreError> for CopyError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::InUse { path, who } => Self::InUse { path, who },
            RestoreError::Store(error) => Self::Store(error),
        }
    }
}

/// Copies the store, as it is at one instant, to a file; nodes may go on working. A file of that name is replaced only if
/// `replace` says so.
///
/// # Errors
/// [`CopyError`]; nothing is changed then.
pub async fn back_up(url: &StoreUrl, to: &Path, replace: bool, ear: Ear) -> Result<BackedUp, CopyError> {
    let (store, file) = (file_of(url)?, to.to_owned());
    if to.symlink_metadata().is_ok() && !replace {
        return Err(CopyError::Exists(file));
    }
    let copied = apart(move || Ok(SqliteStore::back_up(&store, &file, ear)?)).await?;
    Ok(BackedUp { store: url.to_string(), backup: to.to_owned(), bytes: copied.bytes, fleets: copied.fleets })
}

/// Puts a backup in the place of the store, which is kept under another name.
///
/// # Errors
/// [`CopyError::InUse`] while anybody has the store open; nothing is changed then, nor after any other.
pub async fn restore(url: &StoreUrl, from: &Path, ear: Ear) -> Result<BroughtBack, CopyError> {
    let (store, file) = (file_of(url)?, from.to_owned());
    let restored = apart(move || Ok(SqliteStore::restore(&store, &file, ear)?)).await?;
    let (bytes, fleets) = (restored.backup.bytes, restored.backup.fleets);
    let copy = BackedUp { store: url.to_string(), backup: from.to_owned(), bytes, fleets };
    Ok(BroughtBack { copy, kept: restored.kept })
}

/// Runs what blocks its thread.
async fn apart<T: Send + 'static>(
    copy: impl FnOnce() -> Result<T, CopyError> + Send + 'static,
) -> Result<T, CopyError> {
    tokio::task::spawn_blocking(copy).await.unwrap_or_else(|error| Err(CopyError::BrokeOff(error.to_string())))
}

/// The file of the store, if it is in one.
fn file_of(url: &StoreUrl) -> Result<PathBuf, CopyError> {
    match url {
        StoreUrl::Sqlite(path) => Ok(path.clone()),
        StoreUrl::Memory => Err(CopyError::InMemory),
        StoreUrl::Redis(_) => Err(CopyError::OnServer(url.clone())),
    }
}
