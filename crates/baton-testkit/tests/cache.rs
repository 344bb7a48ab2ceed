//! CacheTable of several processes over one store: one computation for all, invalidations that reach everybody, and what
//! happens when the one that computes, or the store, goes away.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use baton::{
    BoxFuture, Fleet, FleetOptions, SessionId,
    cache::{Cache, CacheError, CacheKey, CacheOptions, Prefix, Reading, Source, Value},
    store::{Answer, Request, Store, StoreError, Waiting, Woken},
};
use baton_testkit::{on_every_store, subject::test_fleet};
use tokio::sync::Semaphore;

/// A store, and a cache for each process that would be there.
struct Setting {
    store: Arc<dyn Store>,
}

impl Setting {
    fn over(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    fn fleet(&self) -> Fleet {
        Fleet::over(self.store.clone(), FleetOptions::new(test_fleet()))
    }

    fn cache(&self) -> Cache {
        Cache::shared(&self.fleet(), CacheOptions::default())
    }
}

/// A computation that counts how often it is begun, and ends when it is let.
#[derive(Clone)]
struct Counted {
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Counted {
    fn closed() -> Self {
        Self { begun: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }

    fn open() -> Self {
        let it = Self::closed();
        it.gate.add_permits(1_000_000);
        it
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    async fn until_begun(&self, times: usize) {
        let wait = async {
            while self.begun() < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the computations begin");
    }

    fn compute(&self) -> impl FnOnce() -> BoxFuture<'static, Result<Value, String>> + Send + 'static {
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

fn key() -> CacheKey {
    CacheKey::new("sales").part("tea")
}

/// Reads in a task of its own.
fn reading(
    cache: &Cache, counted: &Counted, reading: Reading,
) -> tokio::task::JoinHandle<Result<baton::cache::Cached, CacheError>> {
    let (cache, compute) = (cache.clone(), counted.compute());
    tokio::spawn(async move { cache.get(&key(), reading, compute).await })
}

async fn read(cache: &Cache, counted: &Counted, how: Reading) -> baton::cache::Cached {
    cache.get(&key(), how, counted.compute()).await.expect("a value")
}

/// Reads until the value is kept in this process: the store has been heard by then.
async fn warm(cache: &Cache, counted: &Counted) {
    let wait = async {
        while read(cache, counted, Reading::on()).await.source != (Source::Hit { local: true }) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("a local hit");
}

async fn a_thousand_equal_calls_in_two_processes_start_one_computation(setting: Setting) {
    let (cache, counted) = ([setting.cache(), setting.cache()], Counted::closed());
    let calls: Vec<_> = (0..1_000).map(|nth| reading(&cache[nth % 2], &counted, Reading::on())).collect();
    counted.until_begun(1).await;
    counted.gate.add_permits(1_000);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().value, "1");
    }
    assert_eq!(counted.begun(), 1);
    let found = read(&setting.cache(), &counted, Reading::on()).await;
    assert_eq!((&found.value[..], found.source), (&b"1"[..], Source::Hit { local: false }));
    assert!(found.ttl.is_some_and(|ttl| ttl <= Duration::from_secs(30) && ttl > Duration::from_secs(20)));
}

async fn an_invalidation_reaches_every_process(setting: Setting) {
    let (here, there, counted) = (setting.cache(), setting.cache(), Counted::open());
    for cache in [&here, &there] {
        warm(cache, &counted).await;
    }
    assert_eq!(counted.begun(), 1);
    let generation = here.invalidate_prefix(&Prefix::new("sales")).await.unwrap();
    let begun = Instant::now();
    // At once for who names it.
    let own = read(&there, &counted, Reading::on().since(generation)).await;
    assert_eq!((&own.value[..], counted.begun()), (&b"2"[..], 2));
    assert!(own.generation >= generation);
    // And for all others soon.
    let generation = there.invalidate(&key()).await.unwrap();
    while read(&here, &counted, Reading::on()).await.generation < generation {
        assert!(begun.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(counted.begun(), 3);
}

async fn a_value_from_before_an_invalidation_elsewhere_is_not_kept(setting: Setting) {
    let (here, there, counted) = (setting.cache(), setting.cache(), Counted::closed());
    let before = reading(&here, &counted, Reading::on());
    counted.until_begun(1).await;
    let generation = there.invalidate(&key()).await.unwrap();
    let after = reading(&there, &counted, Reading::on().since(generation));
    let also_here = reading(&here, &counted, Reading::on().since(generation));
    counted.until_begun(2).await;
    counted.gate.add_permits(10);
    assert_eq!(before.await.unwrap().unwrap().value, "1");
    assert_eq!(after.await.unwrap().unwrap().value, "2");
    assert_eq!(also_here.await.unwrap().unwrap().value, "2");
    assert_eq!(read(&setting.cache(), &counted, Reading::on()).await.value, "2");
    assert_eq!(counted.begun(), 2);
}

async fn one_that_leaves_is_replaced_by_one_of_those_who_wait(setting: Setting) {
    let counted = Counted::closed();
    let leader = setting.fleet();
    let leading = reading(&Cache::shared(&leader, CacheOptions::default()), &counted, Reading::on());
    counted.until_begun(1).await;
    let others = [setting.cache(), setting.cache()];
    let waiting: Vec<_> = (0..20).map(|nth| reading(&others[nth % 2], &counted, Reading::on())).collect();
    // They wait once nobody asks any more; that they wait is seen by nobody computing.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(counted.begun(), 1);
    let begun = Instant::now();
    leading.abort();
    leader.leave().await.unwrap();
    counted.until_begun(2).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    counted.gate.add_permits(100);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap().value, "2");
    }
    assert_eq!(counted.begun(), 2);
}

async fn a_reader_who_leaves_frees_the_right_for_another_process(setting: Setting) {
    let (here, there, counted) = (setting.cache(), setting.cache(), Counted::closed());
    let leading = reading(&here, &counted, Reading::on());
    counted.until_begun(1).await;
    let waiting = reading(&there, &counted, Reading::on());
    tokio::time::sleep(Duration::from_millis(100)).await;
    leading.abort();
    counted.until_begun(2).await;
    counted.gate.add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap().value, "2");
}

async fn what_may_not_be_kept_does_not_make_processes_wait_for_each_other(setting: Setting) {
    let (cache, counted) = ([setting.cache(), setting.cache(), setting.cache()], Counted::closed());
    let read = |cache: &Cache| {
        let (cache, compute) = (cache.clone(), counted.compute());
        let secret = move || async move { compute().await.map(Value::uncached) };
        tokio::spawn(async move { cache.get(&key(), Reading::on(), secret).await })
    };
    let first = read(&cache[0]);
    counted.until_begun(1).await;
    let others = [read(&cache[1]), read(&cache[2])];
    tokio::time::sleep(Duration::from_millis(100)).await;
    counted.gate.add_permits(1);
    assert_eq!(first.await.unwrap().unwrap().source, Source::Computed { stored: false });
    // Both at once, though neither has ended.
    counted.until_begun(3).await;
    counted.gate.add_permits(2);
    for other in others {
        other.await.unwrap().unwrap();
    }
}

async fn an_error_reaches_those_who_wait_in_other_processes(setting: Setting) {
    let (here, there, counted) = (setting.cache(), setting.cache(), Counted::closed());
    let fails = |cache: &Cache| {
        let (cache, compute) = (cache.clone(), counted.compute());
        let failing = move || async move { compute().await.and_then(|_| Err::<Value, _>("no tea".to_owned())) };
        tokio::spawn(async move { cache.get(&key(), Reading::on(), failing).await })
    };
    let first = fails(&here);
    counted.until_begun(1).await;
    let second = fails(&there);
    tokio::time::sleep(Duration::from_millis(100)).await;
    counted.gate.add_permits(10);
    let failed = Err(CacheError::Failed("no tea".into()));
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (failed.clone(), failed));
    assert_eq!(counted.begun(), 1);
}

async fn for_ever_is_a_time_as_any_other(setting: Setting) {
    let all = Duration::MAX;
    let options = || CacheOptions { ttl: all, timeout: all, ..CacheOptions::default() };
    let (here, there) = (Cache::shared(&setting.fleet(), options()), Cache::shared(&setting.fleet(), options()));
    let counted = Counted::open();
    warm(&here, &counted).await;
    let found = read(&there, &counted, Reading::on()).await;
    assert_eq!((&found.value[..], counted.begun()), (&b"1"[..], 1));
    assert!(found.ttl.is_some_and(|ttl| ttl > Duration::from_secs(300 * 86_400)), "{found:?}");
    let generation = there.invalidate(&key()).await.unwrap();
    let own = read(&here, &counted, Reading::on().since(generation)).await;
    assert_eq!((&own.value[..], own.source), (&b"2"[..], Source::Computed { stored: true }));
}

on_every_store! {
    a_thousand_equal_calls_in_two_processes_start_one_computation
    an_invalidation_reaches_every_process
    a_value_from_before_an_invalidation_elsewhere_is_not_kept
    one_that_leaves_is_replaced_by_one_of_those_who_wait
    a_reader_who_leaves_frees_the_right_for_another_process
    what_may_not_be_kept_does_not_make_processes_wait_for_each_other
    an_error_reaches_those_who_wait_in_other_processes
    for_ever_is_a_time_as_any_other
}

/// A store that is cut off when it is told to be.
struct Cut {
    inner: Arc<dyn Store>,
    is_away: Arc<AtomicBool>,
}

impl Cut {
    fn guarded<'a, T: Send + 'a>(
        &'a self, call: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unreachable("it is away".to_owned())) });
        }
        call
    }
}

impl Store for Cut {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        self.guarded(self.inner.call(request))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.apart(), is_away: self.is_away.clone() })
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        self.guarded(self.inner.wait(session, waiting))
    }
}

#[tokio::test]
async fn half_a_lease_without_a_beat_ends_local_hits_and_nothing_is_kept_meanwhile() {
    let (store, is_away) = (baton_testkit::stores::in_memory(), Arc::<AtomicBool>::default());
    let here = Setting::over(Arc::new(Cut { inner: store.clone(), is_away: is_away.clone() })).cache();
    let (there, counted) = (Setting::over(store).cache(), Counted::open());
    warm(&here, &counted).await;
    is_away.store(true, Ordering::SeqCst);
    let cut = Instant::now();
    there.invalidate(&key()).await.unwrap();
    loop {
        let begun = cut.elapsed();
        if read(&here, &counted, Reading::on()).await.source != (Source::Hit { local: true }) {
            break;
        }
        assert!(begun < Duration::from_millis(600), "the store was not heard for {begun:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..3 {
        assert_eq!(read(&here, &counted, Reading::on()).await.source, Source::Computed { stored: false });
    }
    is_away.store(false, Ordering::SeqCst);
    warm(&here, &counted).await;
}

#[tokio::test]
async fn a_store_that_is_away_from_the_beginning_is_waited_for_once_and_noticed_when_it_comes() {
    let is_away = Arc::new(AtomicBool::new(true));
    let store = Cut { inner: baton_testkit::stores::in_memory(), is_away: is_away.clone() };
    let (cache, counted) = (Setting::over(Arc::new(store)).cache(), Counted::open());
    let half_lease = Duration::from_millis(500);
    // Whoever leaves before that was found out has others pay no more than the rest of it.
    assert!(tokio::time::timeout(half_lease / 5, read(&cache, &counted, Reading::on())).await.is_err());
    let begun = Instant::now();
    for nth in 1..=40 {
        let unkept = read(&cache, &counted, Reading::on()).await;
        assert_eq!((unkept.source, unkept.ttl), (Source::Computed { stored: false }, None));
        assert_eq!(counted.begun(), nth);
    }
    assert!(begun.elapsed() < half_lease * 10, "{:?}", begun.elapsed());
    is_away.store(false, Ordering::SeqCst);
    let back = Instant::now();
    warm(&cache, &counted).await;
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
}

#[tokio::test]
async fn a_destroyed_store_takes_what_was_kept_here_with_it() {
    let store = baton_testkit::stores::in_memory();
    let (cache, counted) = (Setting::over(store.clone()).cache(), Counted::open());
    let generation = cache.invalidate(&CacheKey::new("other")).await.unwrap();
    warm(&cache, &counted).await;
    baton::store::ask(&*store, baton::store::Destroy).await.unwrap();
    let begun = Instant::now();
    while read(&cache, &counted, Reading::on()).await.value == "1" {
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A generation of before is answered, and by nobody's value.
    let fresh = read(&cache, &counted, Reading::on().since(generation)).await;
    assert_eq!(fresh.source, Source::Computed { stored: false });
}
