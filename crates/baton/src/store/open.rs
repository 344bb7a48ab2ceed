//! Opening the store a URL names.

use std::sync::Arc;

use super::{Store, StoreError, StoreUrl};
use crate::message::Name;

/// The store at `url` for one fleet; nothing is sent yet. With `create` a missing file is made at the first write.
///
/// # Errors
/// [`StoreError::Unfit`] if what is there can never be used, or stores of its kind were left out of this build.
pub fn open(url: &StoreUrl, fleet: Name, create: bool) -> Result<Arc<dyn Store>, StoreError> {
    match url {
        StoreUrl::Memory => memory(),
        StoreUrl::Sqlite(path) => sqlite(path, fleet, create),
        StoreUrl::Redis(url) => redis(url, fleet),
    }
}

#[cfg(feature = "memory")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
fn memory() -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(super::MemoryStore::new(super::Clock::system())))
}

#[cfg(not(feature = "memory"))]
fn memory() -> Result<Arc<dyn Store>, StoreError> {
    Err(left_out("memory:", "memory"))
}

#[cfg(feature = "sqlite")]
fn sqlite(path: &std::path::Path, fleet: Name, create: bool) -> Result<Arc<dyn Store>, StoreError> {
    let options = super::SqliteOptions { create, ..super::SqliteOptions::default() };
    Ok(Arc::new(super::SqliteStore::open(path, fleet, options)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &std::path::Path, _: Name, _: bool) -> Result<Arc<dyn Store>, StoreError> {
    Err(left_out("sqlite:", "sqlite"))
}

#[cfg(feature = "redis")]
fn redis(url: &url::Url, fleet: Name) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(super::RedisStore::open(url.as_str(), fleet, super::RedisOptions::default())?))
}

#[cfg(not(feature = "redis"))]
fn redis(url: &url::Url, _: Name) -> Result<Arc<dyn Store>, StoreError> {
    let feature = if url.scheme() == "rediss" { "redis-tls" } else { "redis" };
    Err(left_out(&format!("{}://", url.scheme()), feature))
}

/// This build cannot do with such an address.
#[cfg(not(all(feature = "sqlite", feature = "redis-tls")))]
pub(super) fn left_out(address: &str, feature: &str) -> StoreError {
    StoreError::Unfit(format!("{address} is left out of this build: turn on the feature `{feature}` of baton-fleet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_left_out_is_refused_by_the_name_of_its_feature() {
        for (url, feature, is_in) in [
            ("memory:", "memory", cfg!(feature = "memory")),
            ("sqlite:here.db", "sqlite", cfg!(feature = "sqlite")),
            ("redis://127.0.0.1/", "redis", cfg!(feature = "redis")),
            ("rediss://127.0.0.1/", "redis-tls", cfg!(feature = "redis-tls")),
        ] {
            match open(&url.parse().unwrap(), Name::new("f").unwrap(), false) {
                Ok(_) => assert!(is_in, "{url}"),
                Err(error) => {
                    assert!(!is_in, "{url}: {error}");
                    assert!(error.to_string().contains(&format!("`{feature}`")), "{error}");
                }
            }
        }
    }
}
