//! Where a backup may go: to a new name, or over a regular file that is no part of the store.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    location::{real_path, sidecar, unfit},
    note::FileId,
};
use crate::store::StoreError;

/// What lies beside a store and belongs to it, by the end of its name.
const COMPANIONS: [&str; 10] =
    ["-wal", "-shm", "-journal", "-lock", "-gate", "-door", "-log", "-log-new", "-wake", "-reserve"];
/// Logs put aside have a number behind these.
const PUT_ASIDE: [&str; 2] = ["-wal.aside-", "-journal.aside-"];

/// Refuses what a backup of the store at `store` must not take the place of; `to` is absolute, the store's path real.
///
/// # Errors
/// [`StoreError::Unfit`].
pub(super) fn check(to: &Path, store: &Path) -> Result<(), StoreError> {
    // The links of its folder only: what has the name itself is looked at first.
    let named =
        to.parent().zip(to.file_name()).map_or_else(|| to.to_owned(), |(folder, name)| real_path(folder).join(name));
    let is = |path: &Path| named == path || FileId::of(to).is_some_and(|id| FileId::of(path) == Some(id));
    if is(store) {
        return Err(unfit(to, "is the store itself: name another file"));
    }
    let companions = COMPANIONS.into_iter().map(|suffix| sidecar(store, suffix));
    if companions.chain(put_aside(store)).any(|companion| is(&companion)) {
        return Err(unfit(to, "belongs to the store itself: name another file"));
    }
    match fs::symlink_metadata(to) {
        Ok(found) if found.is_symlink() => {
            let leads = fs::read_link(to).unwrap_or_default();
            Err(unfit(to, &format!("is a link to {}: name a file, not a link", leads.display())))
        }
        Ok(found) if !found.is_file() => Err(unfit(to, "is not a regular file: name another")),
        _ => Ok(()),
    }
}

/// The logs of the store that were put aside.
fn put_aside(store: &Path) -> Vec<PathBuf> {
    let entries = store.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let begins = PUT_ASIDE.map(|kind| sidecar(store, kind).into_os_string().into_encoded_bytes());
    let is_log = |path: &PathBuf| begins.iter().any(|begin| path.as_os_str().as_encoded_bytes().starts_with(begin));
    entries.map(|entry| entry.path()).filter(is_log).collect()
}
