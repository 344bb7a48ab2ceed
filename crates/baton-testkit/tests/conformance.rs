//! Every case of the suite on every store; the test names say which.

use baton_testkit::{
    conformance::{self, Scene},
    for_each_case,
    subject::Subject,
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

for_each_case!(on_memory);
