//! The tier of one process: what is shared, what is kept, and what ends it.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::{runtime::Runtime, sync::Semaphore};

use super::*;

/// A computation that counts how often it is begun, and ends when it is let.
#[derive(Clone)]
struct Counted {
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Counted {
    /// One that is let end at once.
    fn open() -> Self {
        Self { begun: Arc::default(), gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)) }
    }

    fn closed() -> Self {
        Self { begun: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    async fn until_begun(&self, times: usize) {
        while self.begun() < times {
            tokio::task::yield_now().await;
        }
    }

    fn open_gate(&self) {
        self.gate.add_permits(1_000_000);
    }

    /// Gives the number of the computation.
    fn compute(&self) -> impl FnOnce() -> crate::BoxFuture<'static, Result<Value, String>> + Send + 'static {
        let it = self.clone();
        move || {
            let number = it.begun.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move {
                it.gate.acquire().await.map_err(|error| error.to_string())?.forget();
                Ok(Value::new(number.to_string()))
            })
        }
    }
}

fn key() -> &'static CacheKey {
    static KEY: LazyLock<CacheKey> = LazyLock::new(|| CacheKey::new("sales").part("tea"));
    &KEY
}

fn local() -> Cache {
    Cache::local(CacheOptions::default())
}

#[tokio::test]
async fn a_thousand_equal_calls_start_one_computation() {
    let (cache, counted) = (local(), Counted::closed());
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let (cache, compute) = (cache.clone(), counted.compute());
            tokio::spawn(async move { cache.get(key(), Reading::on(), compute).await })
        })
        .collect();
    counted.until_begun(1).await;
    counted.open_gate();
    let mut collapsed = 0;
    for call in calls {
        let cached = call.await.unwrap().unwrap();
        assert_eq!(cached.value, "1");
        collapsed += usize::from(cached.source == Source::Collapsed { stored: true });
    }
    assert_eq!((counted.begun(), collapsed), (1, 999));
    assert_eq!(cache.holding().computations, 0);
}

#[tokio::test]
async fn a_value_that_lands_between_the_look_and_the_boarding_is_a_hit() {
    let (cache, counted) = (local(), Counted::open());
    assert_eq!(cache.inner.hit(key(), Reading::on(), Instant::now()), None);
    cache.get(key(), Reading::on(), counted.compute()).await.unwrap();
    // The reader that looked before goes on from there.
    let late = cache.inner.miss(key(), Reading::on(), compute::boxed(counted.compute())).await.unwrap();
    assert_eq!((&late.value[..], late.source, counted.begun()), (&b"1"[..], Source::Hit { local: true }, 1));
    assert_eq!(cache.holding().computations, 0);
}

#[tokio::test]
async fn an_empty_value_is_a_hit() {
    let cache = local();
    for source in [Source::Computed { stored: true }, Source::Hit { local: true }] {
        let cached = cache.get(key(), Reading::on(), || async { Ok::<_, String>("") }).await.unwrap();
        assert_eq!((cached.value.len(), cached.source), (0, source));
    }
}

#[tokio::test(start_paused = true)]
async fn values_are_kept_for_thirty_seconds_and_tell_their_age() {
    let (cache, counted) = (local(), Counted::open());
    let read = || cache.get(key(), Reading::on(), counted.compute());
    read().await.unwrap();
    tokio::time::advance(Duration::from_secs(18)).await;
    let hit = read().await.unwrap();
    assert_eq!((hit.age, hit.ttl), (Duration::from_secs(18), Some(Duration::from_secs(12))));
    tokio::time::advance(Duration::from_secs(12)).await;
    assert_eq!(read().await.unwrap().source, Source::Computed { stored: true });
    assert_eq!(counted.begun(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_shared_and_held_for_a_moment_but_not_kept() {
    let cache = local();
    let begun = Arc::new(AtomicUsize::new(0));
    let read = || {
        let begun = begun.clone();
        cache.get(key(), Reading::on(), move || async move {
            begun.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            Err::<Value, _>("no tea")
        })
    };
    let failed = CacheError::Failed("no tea".into());
    let (first, second) = tokio::join!(read(), read());
    assert_eq!((first, second), (Err(failed.clone()), Err(failed.clone())));
    tokio::time::advance(Duration::from_millis(50)).await;
    assert_eq!(read().await, Err(failed.clone()));
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(read().await, Err(failed));
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_caller_who_leaves_harms_nobody() {
    let (cache, counted) = (local(), Counted::closed());
    let first = {
        let (cache, compute) = (cache.clone(), counted.compute());
        tokio::spawn(async move { cache.get(key(), Reading::on(), compute).await })
    };
    counted.until_begun(1).await;
    let second = tokio::spawn({
        let (cache, compute) = (cache.clone(), counted.compute());
        async move { cache.get(key(), Reading::on(), compute).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    counted.open_gate();
    let cached = second.await.unwrap().unwrap();
    assert_eq!((&cached.value[..], counted.begun()), (&b"1"[..], 1));
}

#[tokio::test]
async fn the_last_who_leaves_ends_the_computation_and_nobody_joins_it() {
    let (cache, counted) = (local(), Counted::closed());
    let only = {
        let (cache, compute) = (cache.clone(), counted.compute());
        tokio::spawn(async move { cache.get(key(), Reading::on(), compute).await })
    };
    counted.until_begun(1).await;
    only.abort();
    assert!(only.await.unwrap_err().is_cancelled());
    assert_eq!(cache.holding().computations, 0);
    // Its future is dropped, and with it its share of the gate.
    while Arc::strong_count(&counted.gate) > 1 {
        tokio::task::yield_now().await;
    }
    counted.open_gate();
    assert_eq!(cache.get(key(), Reading::on(), counted.compute()).await.unwrap().value, "2");
}

#[tokio::test]
async fn a_panic_is_an_error_for_all_who_wait() {
    let cache = local();
    let read = || {
        cache.get(key(), Reading::on(), || async {
            tokio::task::yield_now().await;
            assert!(Instant::now().elapsed() > Duration::MAX, "out of tea");
            Ok::<_, String>("tea")
        })
    };
    let (first, second) = tokio::join!(read(), read());
    assert_eq!(first, Err(CacheError::Panicked("out of tea".into())));
    assert_eq!(second, first);
}

#[tokio::test(start_paused = true)]
async fn a_computation_has_a_timeout() {
    let cache = local();
    let begun = Instant::now();
    let late = cache.get(key(), Reading::on(), || async { std::future::pending::<Result<Value, String>>().await });
    assert_eq!(late.await, Err(CacheError::Timeout(Duration::from_secs(30))));
    assert!(begun.elapsed() < Duration::from_secs(31));
}

#[tokio::test]
async fn for_ever_is_a_time_as_any_other() {
    let all = Duration::MAX;
    let cache = Cache::local(CacheOptions { ttl: all, timeout: all, error_hold: all, ..CacheOptions::default() });
    let other = CacheKey::new("coffee");
    for stored in [Source::Computed { stored: true }, Source::Hit { local: true }] {
        let read = cache.get(key(), Reading::on(), || async { Ok::<_, String>("tea") }).await.unwrap();
        let long =
            cache.get(&other, Reading::on(), || async { Ok::<_, String>(Value::new("x").with_ttl(Duration::MAX)) });
        assert_eq!((read.source, long.await.unwrap().source), (stored, stored));
        assert!(read.ttl > Some(Duration::from_secs(86_400 * 365)));
    }
}

#[tokio::test]
async fn a_value_from_before_an_invalidation_is_not_kept_and_not_joined() {
    for wide in [false, true] {
        let (cache, counted) = (local(), Counted::closed());
        let before = {
            let (cache, compute) = (cache.clone(), counted.compute());
            tokio::spawn(async move { cache.get(key(), Reading::on(), compute).await })
        };
        counted.until_begun(1).await;
        let generation = if wide {
            cache.invalidate_prefix(&Prefix::new("sales")).await.unwrap()
        } else {
            cache.invalidate(key()).await.unwrap()
        };
        let after = {
            let (cache, compute) = (cache.clone(), counted.compute());
            tokio::spawn(async move { cache.get(key(), Reading::on().since(generation), compute).await })
        };
        counted.until_begun(2).await;
        // The one that was overtaken ends first, and leaves nothing behind.
        counted.gate.add_permits(1);
        let before = before.await.unwrap().unwrap();
        assert_eq!(
            (&before.value[..], before.source, before.ttl),
            (&b"1"[..], Source::Computed { stored: false }, None)
        );
        assert_eq!(cache.holding().values, 0);
        counted.open_gate();
        assert_eq!(after.await.unwrap().unwrap().value, "2");
        let kept = cache.get(key(), Reading::on(), counted.compute()).await.unwrap();
        assert_eq!(
            (&kept.value[..], kept.source, kept.generation),
            (&b"2"[..], Source::Hit { local: true }, generation)
        );
    }
}

#[tokio::test]
async fn other_keys_outlive_an_invalidation() {
    let (cache, counted) = (local(), Counted::open());
    cache.get(key(), Reading::on(), counted.compute()).await.unwrap();
    cache.invalidate(&CacheKey::new("sales")).await.unwrap();
    cache.invalidate_prefix(&Prefix::new("sales").part("te")).await.unwrap();
    let hit = cache.get(key(), Reading::on(), counted.compute()).await.unwrap();
    assert_eq!(hit.source, Source::Hit { local: true });
}

#[tokio::test]
async fn modes_share_as_much_as_they_say() {
    let (cache, counted) = (local(), Counted::open());
    let read = |mode| cache.get(key(), Reading::by(mode), counted.compute());
    let (one, other) = tokio::join!(read(Mode::Off), read(Mode::Off));
    assert_eq!((one.unwrap().source, counted.begun()), (Source::Computed { stored: false }, 2));
    assert_eq!(other.unwrap().source, Source::Computed { stored: false });
    let (one, other) = tokio::join!(read(Mode::Batch), read(Mode::Batch));
    assert_eq!((one.unwrap().source, counted.begun()), (Source::Computed { stored: false }, 3));
    assert_eq!(other.unwrap().source, Source::Collapsed { stored: false });
    read(Mode::Batch).await.unwrap();
    assert_eq!((cache.holding().values, counted.begun()), (0, 4));
}

#[tokio::test]
async fn what_may_not_be_kept_is_shared_only_by_those_who_wait() {
    let cache = local();
    let read = || cache.get(key(), Reading::on(), || async { Ok::<_, String>(Value::new("secret").uncached()) });
    let (one, other) = tokio::join!(read(), read());
    assert_eq!(one.unwrap().source, Source::Computed { stored: false });
    assert_eq!(other.unwrap().source, Source::Collapsed { stored: false });
    assert_eq!(read().await.unwrap().source, Source::Computed { stored: false });
}

/// What `act` gives, in a thread of its own: a test fails instead of hanging with it.
#[track_caller]
fn bounded<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(act()));
    is_done.recv_timeout(Duration::from_secs(30)).expect("it ends")
}

#[test]
fn in_a_runtime_that_has_shut_down_a_computation_is_dropped_and_the_cache_goes_on_in_another() {
    let (cache, counted) = (local(), Counted::open());
    let (read, it) = (counted.compute(), cache.clone());
    let dropped = bounded(move || {
        let runtime = Runtime::new().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        handle.block_on(it.get(key(), Reading::on(), read))
    });
    assert_eq!((dropped, cache.holding().computations), (Err(CacheError::Dropped), 0));
    let read = cache.get(key(), Reading::on(), counted.compute());
    assert_eq!(Runtime::new().unwrap().block_on(read).unwrap().value, "1");
}

#[test]
fn outside_of_a_runtime_it_panics_and_can_be_used_afterwards() {
    for mode in [Mode::On, Mode::Batch] {
        let (cache, counted) = (local(), Counted::open());
        let (read, it) = (counted.compute(), cache.clone());
        let panicked = bounded(move || {
            let polled = || it.get(key(), Reading::by(mode), read).now_or_never();
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(polled)).is_err()
        });
        assert!(panicked && cache.holding().computations == 0);
        let read = cache.get(key(), Reading::by(mode), counted.compute());
        assert_eq!(Runtime::new().unwrap().block_on(read).unwrap().value, "1");
    }
}

#[test]
fn a_flight_whose_task_cannot_be_started_is_none() {
    let computations = Arc::new(Computations::default());
    let it = computations.clone();
    let panicked = bounded(move || {
        let board = || it.board((key().clone(), Mode::On), 0, |_| true, || None::<()>, |_| panic!("no thread is left"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(board)).is_err()
    });
    assert!(panicked && computations.count() == 0);
}

#[test]
fn a_runtime_whose_tasks_read_without_end_can_be_dropped() {
    for _ in 0..20 {
        let (cache, reads) = (local(), Arc::new(AtomicUsize::new(0)));
        let (it, count) = (cache.clone(), reads.clone());
        bounded(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            for task in 0..8 {
                let (cache, reads) = (it.clone(), count.clone());
                runtime.spawn(async move {
                    for nth in 0_u64.. {
                        let key = CacheKey::new("sales").part(task.to_string()).part(nth.to_string());
                        cache.get(&key, Reading::by(Mode::Batch), || async { Ok::<_, String>("tea") }).await.ok();
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while count.load(Ordering::Relaxed) < 1_000 {
                std::thread::yield_now();
            }
            drop(runtime);
        });
        assert_eq!(cache.holding().computations, 0);
    }
}
