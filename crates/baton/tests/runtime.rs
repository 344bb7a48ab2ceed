//! Runtimes that lack what the library needs: each entry says so at once, with the next step.
#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::time::Duration;

use baton::{
    Done, Fleet, Shutdown, Since,
    admin::Admin,
    cache::{Cache, CacheError, CacheKey, CacheOptions, Reading},
    store::{TakeSurvey, message::CallId},
};
use tokio::runtime::Builder;

/// What `act` gives, in a thread of its own: a test fails instead of hanging with it.
#[track_caller]
fn bounded<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    is_done.recv_timeout(Duration::from_secs(30)).expect("it ends, and without a panic")
}

#[test]
fn without_timers_every_entry_says_what_to_do() {
    let told = bounded(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build().unwrap();
        runtime.block_on(async {
            let fleet = Fleet::connect("memory:").unwrap();
            let queue = fleet.queue::<u32>("q");
            let call: CallId = "q/1".parse().unwrap();
            let node = fleet.node().handler("q", async |_: u32, _| Ok(Done::default()));
            let cache = Cache::local(CacheOptions::default());
            let key = CacheKey::new("tea");
            let read = cache.get(&key, Reading::on(), || async { Ok::<_, String>("42") }).await;
            assert_eq!(read, Err(CacheError::NoTimers));
            let told: Vec<String> = vec![
                queue.push(&1).await.unwrap_err().to_string(),
                queue.push_all([1, 2]).await.unwrap_err().to_string(),
                node.run(Shutdown::new()).await.unwrap_err().to_string(),
                fleet.ask(TakeSurvey).await.unwrap_err().to_string(),
                fleet.follow(&call, Since::Start).next().await.unwrap_err().to_string(),
                fleet.cancel_call(&call).await.unwrap_err().to_string(),
                Admin::new(&fleet).survey().await.unwrap_err().to_string(),
                read.unwrap_err().to_string(),
            ];
            told
        })
    });
    for told in told {
        assert!(
            told.ends_with("this tokio runtime has no timers: build it with enable_all(), or take #[tokio::main]"),
            "{told}"
        );
    }
}

#[test]
fn without_an_io_driver_redis_and_children_say_what_to_do() {
    let (pushed, started) = bounded(|| {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let fleet = Fleet::connect("redis://127.0.0.1:9").unwrap();
            let started = baton::process::Child::start(&mut tokio::process::Command::new("true"));
            (fleet.queue::<u32>("q").push(&1).await.unwrap_err().to_string(), started.unwrap_err().to_string())
        })
    });
    for told in [pushed, started] {
        assert_eq!(told, "this tokio runtime has no I/O driver: build it with enable_all(), or take #[tokio::main]");
    }
}

#[test]
fn in_a_runtime_that_has_shut_down_a_push_fails_and_the_fleet_goes_on_in_another() {
    let fleet = Fleet::connect("memory:").unwrap();
    let queue = fleet.queue::<u32>("q");
    let told = bounded(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        handle.block_on(queue.push(&1)).unwrap_err().to_string()
    });
    assert_eq!(told, "this tokio runtime is shutting down: call from one that goes on");
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(fleet.queue::<u32>("q").push(&1)).unwrap().0, 1);
}
