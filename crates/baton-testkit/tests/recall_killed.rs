//! The process that computes is killed: one of those who wait computes in its stead.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{
    Fleet, FleetOptions,
    cache::{Cache, CacheKey, CacheOptions, Reading},
};
use baton_testkit::{
    server::{Persistence, RedisServer},
    subject::test_fleet,
};

/// Longer than a machine with much else to do keeps anybody from its store: who hears nothing from it for half of this
/// computes without it.
const LEASE: Duration = Duration::from_secs(4);

/// A process that ends with the test, whatever becomes of that.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a child ends");
    }
}

async fn the_killed_one_is_replaced(url: &str, folder: &Path) {
    let begun = folder.join("begun");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cache_user"));
    command.args(["--store", url, "--begun"]).arg(&begun).stdin(Stdio::null());
    command.arg("--lease-ms").arg(LEASE.as_millis().to_string());
    let computing = Process(command.spawn().expect("the process starts"));
    let waiting = Instant::now();
    while !begun.exists() {
        assert!(waiting.elapsed() < Duration::from_secs(30), "its computation begins");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let computations = Arc::new(AtomicUsize::new(0));
    let fleets = [0, 1].map(|_| {
        let url = url.parse().expect("a URL");
        let mut options = FleetOptions::new(test_fleet());
        options.session.lease = LEASE;
        Fleet::connect_with(&url, options).expect("a store")
    });
    let cache = fleets.each_ref().map(|fleet| Cache::shared(fleet, CacheOptions::default()));
    let calls: Vec<_> = (0..200)
        .map(|nth| {
            let (cache, computations) = (cache[nth % 2].clone(), computations.clone());
            tokio::spawn(async move {
                let compute = move || async move {
                    computations.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok::<_, String>("computed anew")
                };
                cache.get(&CacheKey::new("slow"), Reading::on(), compute).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(computations.load(Ordering::SeqCst), 0, "they wait for the other process");
    drop(computing);
    let killed = Instant::now();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().value, "computed anew");
    }
    let took = killed.elapsed();
    println!("answered {took:?} after the kill");
    // A lease and a second on a machine that is free.
    assert!(took < LEASE + Duration::from_secs(10), "{took:?}");
    assert_eq!(computations.load(Ordering::SeqCst), 1);
    assert_eq!(std::fs::read_to_string(&begun).unwrap().lines().count(), 1);
    for fleet in &fleets {
        fleet.leave().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_redis() {
    let (server, folder) = (RedisServer::start(Persistence::None), tempfile::tempdir().unwrap());
    the_killed_one_is_replaced(&server.url(), folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    the_killed_one_is_replaced(&url, folder.path()).await;
}
