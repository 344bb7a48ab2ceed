//! A store of each kind, for scenarios that hold on all of them.

use std::{path::Path, sync::Arc};

use baton::store::{Clock, MemoryStore, RedisOptions, RedisStore, SqliteOptions, SqliteStore, Store};

use crate::{server::RedisServer, subject::test_fleet};

/// One in memory.
#[must_use]
pub fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Clock::system()))
}

/// One in a file of this folder.
#[must_use]
pub fn in_a_file(folder: &Path) -> Arc<dyn Store> {
    let path = folder.join("store.db");
    Arc::new(SqliteStore::open(&path, test_fleet(), SqliteOptions::default()).expect("a new file"))
}

/// One in a server.
#[must_use]
pub fn in_redis(server: &RedisServer) -> Arc<dyn Store> {
    Arc::new(RedisStore::open(&server.url(), test_fleet(), RedisOptions::default()).expect("a server that is up"))
}

/// Runs scenarios on each store: async functions that take what the `Setting::over` of their file makes of it.
#[macro_export]
macro_rules! on_every_store {
    ($($scenario:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $scenario() {
                super::$scenario(super::Setting::over($crate::stores::in_memory())).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $scenario() {
                let folder = tempfile::tempdir().unwrap();
                super::$scenario(super::Setting::over($crate::stores::in_a_file(folder.path()))).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $scenario() {
                let server = $crate::server::RedisServer::start($crate::server::Persistence::None);
                super::$scenario(super::Setting::over($crate::stores::in_redis(&server))).await;
            })*
        }
    };
}
