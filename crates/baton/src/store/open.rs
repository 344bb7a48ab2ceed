//! Opening the store a URL names.

use std::sync::Arc;

use super::{Clock, MemoryStore, RedisOptions, RedisStore, SqliteOptions, SqliteStore, Store, StoreError, StoreUrl};
use crate::message::Name;

/// The store at `url` for one fleet; nothing is sent yet. With `create` a missing file is made at the first write.
///
/// # Errors
/// [`StoreError::Unfit`] if what is there can never be used.
pub fn open(url: &StoreUrl, fleet: Name, create: bool) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match url {
        StoreUrl::Memory => Arc::new(MemoryStore::new(Clock::system())),
        StoreUrl::Sqlite(path) => {
            let options = SqliteOptions { create, ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(path, fleet, options)?)
        }
        StoreUrl::Redis(url) => Arc::new(RedisStore::open(url.as_str(), fleet, RedisOptions::default())?),
    })
}
