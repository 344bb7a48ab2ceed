//! A history of reads, writes and invalidations over three gateways with one store, in simulated time: no read gives a value
//! older than an invalidation that was answered over a second before it began, and none older than the generation it names.
//! The same history with one check left out shows that the check is needed.
//!
//! `BATON_SEED` runs a history again, `BATON_OPS` sets its length.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod chance;
mod link;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use baton::{
    Fleet, FleetOptions,
    cache::{Cache, CacheKey, CacheOptions, Check, Generation, Prefix, Reading, Source, Value},
    store::{Clock, MemoryStore, Store},
};
use baton_testkit::subject::{START_MS, test_fleet};
use tokio::time::Instant;

use self::{
    chance::Chance,
    link::{Link, StoreCheck, Unchecked},
};

const GROUPS: u64 = 4;
const ITEMS: u64 = 8;
/// For how long an invalidation that was answered need not be seen by those who do not name it.
const GRACE: Duration = Duration::from_secs(1);

type Item = (u64, u64);

fn key((group, item): Item) -> CacheKey {
    CacheKey::new("sales").part(group.to_string()).part(item.to_string())
}

/// What is computed from, and what its writers were answered.
#[derive(Default)]
struct Base {
    versions: HashMap<Item, u64>,
    /// Of each item: the version, the generation of its invalidation, and when that was answered.
    answered: HashMap<Item, Vec<(u64, Generation, Instant)>>,
}

impl Base {
    /// The oldest version that a reader may be given who begins now.
    fn due(&self, item: Item, now: Instant, least: Option<Generation>) -> u64 {
        let writes = self.answered.get(&item).map(Vec::as_slice).unwrap_or_default();
        let binds = |(_, generation, at): &&(u64, Generation, Instant)| {
            least.is_some_and(|least| *generation <= least) || *at + GRACE < now
        };
        writes.iter().filter(binds).map(|(version, ..)| *version).max().unwrap_or(0)
    }
}

#[derive(Default)]
struct Account {
    reads: u64,
    local_hits: u64,
    shared_hits: u64,
    collapsed: u64,
    failed: u64,
    writes: u64,
    kills: u64,
    holds: u64,
    too_old: Vec<String>,
}

struct Gateway {
    cache: Cache,
    link: Link,
    dies: Arc<tokio::sync::Notify>,
}

struct World {
    store: Arc<dyn Store>,
    chance: Arc<Chance>,
    unchecked: Arc<Unchecked>,
    left_out: Option<Check>,
    base: Arc<Mutex<Base>>,
    account: Arc<Mutex<Account>>,
}

impl World {
    fn gateway(&self) -> Gateway {
        let link = Link::new(self.store.clone(), self.chance.clone(), self.unchecked.clone());
        let fleet = Fleet::over(Arc::new(link.clone()), FleetOptions::new(test_fleet()));
        let options = CacheOptions { left_out: self.left_out, ..CacheOptions::default() };
        Gateway { cache: Cache::shared(&fleet, options), link, dies: Arc::default() }
    }

    /// What a computation gives: what the base had when it was begun, though it ends later.
    fn compute(
        &self, item: Item,
    ) -> impl FnOnce() -> baton::BoxFuture<'static, Result<Value, String>> + Send + 'static {
        let (base, chance) = (self.base.clone(), self.chance.clone());
        move || {
            Box::pin(async move {
                let version = base.lock().unwrap().versions.get(&item).copied().unwrap_or(0);
                let slow = if chance.one_in(20) { 3_000 } else { 30 };
                tokio::time::sleep(Duration::from_millis(chance.below(slow))).await;
                Ok(Value::new(version.to_string()))
            })
        }
    }

    fn read(&self, gateway: &Gateway, item: Item, newest: Option<Generation>) {
        let reading = newest.map_or(Reading::on(), |least| Reading::on().since(least));
        let (cache, compute, dies) = (gateway.cache.clone(), self.compute(item), gateway.dies.clone());
        let (base, account) = (self.base.clone(), self.account.clone());
        let due = base.lock().unwrap().due(item, Instant::now(), newest);
        tokio::spawn(async move {
            let begun = Instant::now();
            let given = tokio::select! {
                biased;
                () = dies.notified() => return,
                given = async { cache.get(&key(item), reading, compute).await } => given,
            };
            let mut account = account.lock().unwrap();
            account.reads += 1;
            match given {
                Ok(given) => {
                    match given.source {
                        Source::Hit { local: true } => account.local_hits += 1,
                        Source::Hit { local: false } => account.shared_hits += 1,
                        Source::Collapsed { .. } => account.collapsed += 1,
                        Source::Computed { .. } => {}
                    }
                    let version: u64 = std::str::from_utf8(&given.value).unwrap().parse().unwrap();
                    if version < due {
                        account.too_old.push(format!(
                            "{item:?} at {begun:?}: version {version} of {due}, {:?}, generation {}, named {newest:?}",
                            given.source, given.generation
                        ));
                    }
                }
                Err(_) => account.failed += 1,
            }
        });
    }

    /// Changes an item, or all of a group, and invalidates what was computed from it.
    fn write(&self, gateway: &Gateway, (group, item): Item, newest: Arc<Mutex<Generation>>) {
        let wide = self.chance.one_in(4);
        let items: Vec<Item> = if wide { (0..ITEMS).map(|item| (group, item)).collect() } else { vec![(group, item)] };
        let versions: Vec<u64> = {
            let mut base = self.base.lock().unwrap();
            let next = |item| {
                let version = base.versions.entry(item).or_default();
                *version += 1;
                *version
            };
            items.iter().copied().map(next).collect()
        };
        let (cache, dies) = (gateway.cache.clone(), gateway.dies.clone());
        let (base, account) = (self.base.clone(), self.account.clone());
        tokio::spawn(async move {
            let invalidated = async {
                match wide {
                    true => cache.invalidate_prefix(&Prefix::new("sales").part(group.to_string())).await,
                    false => cache.invalidate(&key((group, item))).await,
                }
            };
            let generation = tokio::select! {
                biased;
                () = dies.notified() => return,
                generation = invalidated => generation,
            };
            let Ok(generation) = generation else { return };
            account.lock().unwrap().writes += 1;
            let mut base = base.lock().unwrap();
            for (item, version) in items.into_iter().zip(versions) {
                base.answered.entry(item).or_default().push((version, generation, Instant::now()));
            }
            let mut newest = newest.lock().unwrap();
            *newest = (*newest).max(generation);
        });
    }
}

/// A history of so many operations.
fn history(seed: u64, operations: u64, left_out: Option<Check>, store_check: Option<StoreCheck>) -> Account {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let clock = Clock::read_by(move || START_MS + u64::try_from(begun.elapsed().as_millis()).unwrap_or(0));
        let world = World {
            store: Arc::new(MemoryStore::new(clock)),
            chance: Arc::new(Chance::new(seed)),
            unchecked: Arc::new(Unchecked::without(store_check)),
            left_out,
            base: Arc::default(),
            account: Arc::default(),
        };
        let chance = world.chance.clone();
        let mut gateways = [world.gateway(), world.gateway(), world.gateway()];
        let newest = Arc::new(Mutex::new(Generation(0)));
        for operation in 0..operations {
            tokio::time::sleep(Duration::from_micros(chance.below(4_000))).await;
            let at = usize::try_from(chance.below(3)).unwrap();
            // Some items are read much more than others.
            let item = (chance.below(GROUPS), chance.below(ITEMS).min(chance.below(ITEMS)));
            match chance.below(1_000) {
                0 if operation % 4 == 0 => {
                    let killed = std::mem::replace(&mut gateways[at], world.gateway());
                    killed.link.kill();
                    killed.dies.notify_waiters();
                    world.account.lock().unwrap().kills += 1;
                }
                0..2 => {
                    gateways[at].link.hold(Duration::from_millis(chance.below(4_000)));
                    world.account.lock().unwrap().holds += 1;
                }
                2..12 => world.write(&gateways[at], item, newest.clone()),
                12..150 => {
                    let least = *newest.lock().unwrap();
                    world.read(&gateways[at], item, Some(least));
                }
                _ => world.read(&gateways[at], item, None),
            }
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
        std::mem::take(&mut *world.account.lock().unwrap())
    })
}

fn settings(operations: u64) -> (u64, u64) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let random = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("BATON_SEED").unwrap_or_else(random);
    let operations = number("BATON_OPS").unwrap_or(operations);
    println!("BATON_SEED={seed} BATON_OPS={operations}");
    (seed, operations)
}

#[test]
fn no_read_gives_what_was_invalidated() {
    let (seed, operations) = settings(100_000);
    let account = history(seed, operations, None, None);
    let Account { reads, local_hits, shared_hits, collapsed, failed, writes, kills, holds, too_old } = &account;
    println!(
        "{reads} reads ({local_hits} local hits, {shared_hits} shared, {collapsed} collapsed, {failed} failed), \
         {writes} writes, {kills} kills, {holds} holds"
    );
    assert!(too_old.is_empty(), "{} reads gave too old a value, the first {:?}", too_old.len(), too_old.first());
    assert!(*local_hits * 10 >= operations, "too few local hits to mean something: {local_hits}");
    assert!(*kills > 0 && *holds > 0 && *writes > 0);
    assert!(*failed * 100 < *reads, "{failed} of {reads} reads failed");
}

/// The history must fail where a check is left out, by any of some seeds.
fn is_needed(left_out: Option<Check>, store_check: Option<StoreCheck>) {
    let (seed, operations) = settings(20_000);
    let found = (0..5).any(|nth| !history(seed + nth, operations, left_out, store_check).too_old.is_empty());
    assert!(found, "nobody notices that {left_out:?} {store_check:?} is left out");
}

#[test]
fn the_check_of_a_hit_is_needed() {
    is_needed(Some(Check::Hit), None);
}

#[test]
fn the_check_before_joining_a_computation_is_needed() {
    is_needed(Some(Check::Join), None);
}

#[test]
fn the_half_lease_without_a_beat_is_needed() {
    is_needed(Some(Check::Window), None);
}

#[test]
fn the_check_of_the_generation_that_is_named_is_needed() {
    is_needed(Some(Check::Least), None);
}

#[test]
fn the_check_of_the_store_when_it_keeps_is_needed() {
    is_needed(None, Some(StoreCheck::Write));
}

#[test]
fn the_check_of_the_store_when_it_reads_is_needed() {
    is_needed(None, Some(StoreCheck::Read));
}
