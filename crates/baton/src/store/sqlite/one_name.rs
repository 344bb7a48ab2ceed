//! A store is used by one name: log, locks and all that lies beside a file go by its name, not by the file.
//!
//! A second name (a hard link, or the file alone mounted elsewhere) has no log beside it: what is written by it changes
//! the file under those who use the first one, and their log no longer fits. So whoever is inside also holds a shared
//! lock on the file itself, which is the same by every name. One who is alone at the door (see `door`) and does not get
//! that lock for itself is at another name than those who hold it, and is refused.
//!
//! A process that closes any handle of a file loses the locks that SQLite holds on it there. Hence a process has one
//! such handle for a file, closed when the last of its connections has gone. Nothing is held where these locks are not
//! apart from SQLite's own (elsewhere than on Linux).

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::File,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    holder,
    location::{io_error, unfit},
    note::FileId,
};
use crate::store::StoreError;

static HELD: Mutex<BTreeMap<FileId, Held>> = Mutex::new(BTreeMap::new());

/// A file that this process has open.
struct Held {
    file: File,
    path: PathBuf,
    holds: usize,
}

/// A connection's part in the lock on the file itself, until dropped.
#[derive(Debug)]
pub(super) struct Hold(FileId);

impl Hold {
    /// For one who is alone at the door of `path`: whether it is alone with the file too; shared from now on.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] if somebody has the file open by another name.
    pub(super) fn alone(path: &Path) -> Result<Option<Self>, StoreError> {
        Self::take(path, |held| held.holds == 0 && held.file.try_lock().is_ok())
    }

    /// For one who goes in beside others.
    ///
    /// # Errors
    /// As [`Hold::alone`].
    pub(super) fn beside(path: &Path) -> Result<Option<Self>, StoreError> {
        Self::take(path, |_| true)
    }

    fn take(path: &Path, may: impl FnOnce(&Held) -> bool) -> Result<Option<Self>, StoreError> {
        let Some(id) = FileId::of(path).filter(|_| cfg!(target_os = "linux")) else { return Ok(None) };
        let mut all = all();
        let held = match all.entry(id) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => {
                let file = File::open(path).map_err(|error| io_error(path, &error))?;
                place.insert(Held { file, path: path.to_owned(), holds: 0 })
            }
        };
        let taken = may(held) && (held.holds > 0 || share(&held.file));
        if taken {
            held.holds += 1;
            return Ok(Some(Self(id)));
        }
        let refused = refusal(path, held);
        if held.holds == 0 {
            all.remove(&id);
        }
        Err(refused)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut all = all();
        let Some(held) = all.get_mut(&self.0) else { return };
        held.holds -= 1;
        if held.holds == 0 {
            all.remove(&self.0);
        }
    }
}

fn all() -> MutexGuard<'static, BTreeMap<FileId, Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets others by the same name in.
fn share(file: &File) -> bool {
    file.unlock().and_then(|()| file.try_lock_shared().map_err(Into::into)).is_ok()
}

fn refusal(path: &Path, held: &Held) -> StoreError {
    let (who, name) = if held.holds > 0 {
        ("this process".to_owned(), Some(held.path.clone()))
    } else {
        holder::with_file(path).unwrap_or_else(|| ("another process".to_owned(), None))
    };
    let name =
        name.filter(|name| name != path).map_or_else(|| "that name".to_owned(), |name| name.display().to_string());
    unfit(path, &format!("is open by another name in {who}: use {name}"))
}
