//! Every case of the suite on every store; the test names say which.

use baton_testkit::{
    conformance::{self, Scene},
    for_each_case,
    server::{Persistence, RedisServer},
    subject::{Subject, test_fleet},
};

macro_rules! on_memory {
    ($($case:ident)*) => {
        mod memory {
            use super::*;
            $(#[tokio::test] async fn $case() {
                let mut scene = Scene::new(Subject::memory());
                conformance::$case(&mut scene).await;
                scene.balanced().await;
            })*
        }
    };
}

macro_rules! on_sqlite {
    ($($case:ident)*) => {
        mod sqlite {
            use super::*;
            $(#[tokio::test] async fn $case() {
                let folder = tempfile::tempdir().unwrap();
                let mut scene = Scene::new(Subject::sqlite(&folder.path().join("store.db"), test_fleet()));
                conformance::$case(&mut scene).await;
                scene.balanced().await;
            })*
        }
    };
}

macro_rules! on_redis {
    ($($case:ident)*) => {
        mod redis {
            use super::*;
            $(#[tokio::test] async fn $case() {
                let server = RedisServer::start(Persistence::None);
                let mut scene = Scene::new(Subject::redis(&server, test_fleet()).await);
                conformance::$case(&mut scene).await;
                scene.balanced().await;
            })*
        }
    };
}

for_each_case!(on_memory);
for_each_case!(on_sqlite);
for_each_case!(on_redis);
