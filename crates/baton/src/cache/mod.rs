//! Before an expensive computation: readers who ask for the same at the same time share one, and its value is kept for a
//! while. In one process ([`Cache::local`]), or in all of a fleet ([`Cache::shared`]). Nothing here knows HTTP.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton::cache::{CacheKey, Prefix, Reading, Cache, CacheOptions, Source};
//!
//! let cache = Cache::local(CacheOptions::default()); // or Cache::shared(&fleet, …)
//! let key = CacheKey::new("sales").part("total").part("tea");
//! let read = || cache.get(&key, Reading::on(), || async { Ok::<_, String>("42") });
//! assert_eq!(read().await?.source, Source::Computed { stored: true });
//! assert_eq!(read().await?.source, Source::Hit { local: true });
//!
//! let generation = cache.invalidate_prefix(&Prefix::new("sales")).await?;
//! assert_eq!(read().await?.source, Source::Computed { stored: true });
//! let own_write = Reading::on().since(generation); // never older than that, whichever process it reads from
//! assert_eq!(cache.get(&key, own_write, || async { Ok::<_, String>("43") }).await?.value, "42");
//! # Ok::<(), baton::cache::CacheError>(()) }).unwrap();
//! ```
//!
//! # What is promised
//!
//! * **One computation** for all who ask for a key at the same time. It is a task of its own: a caller who leaves harms
//!   nobody, and it is cancelled when the last who waits has left. A panic, an error or a timeout reaches all who wait; errors
//!   answer others for a moment more ([`CacheOptions::error_hold`]) and are not kept.
//! * **A value computed before an invalidation is never kept or served after it.** Invalidations have generations. A value is
//!   kept with the generation at which it was valid, and is a hit only if nothing newer covers its key; a reader after an
//!   invalidation never joins a computation that was begun before it.
//! * **In all of a fleet** an invalidation holds from its answer on for readers who name its generation
//!   ([`Reading::since`]), and for all others within half a lease. While the store is away values are computed and not
//!   kept.
//! * **Everything is bounded**: values by bytes, here and in the store; computations by a timeout.
//!
//! The key must hold everything that the value depends on: parameters in a canonical form, and who asks where it matters.
//! Whether somebody may have a value is to be decided before it is asked for.
//!
//! A computation runs in the runtime of whoever asked first; what keeps a thread busy belongs into `spawn_blocking`.

mod computation;
mod compute;
mod known;
mod local;
mod options;
mod shared;
mod shared_computation;
#[cfg(test)]
mod tests;
mod value;

use std::{
    fmt::Display,
    future::Future,
    sync::{Arc, RwLock},
};

use tokio::{runtime::Handle, time::Instant};

#[doc(hidden)]
pub use self::options::Check;
use self::{
    computation::{Boarded, Computation, Computations, From, Landed, Landing},
    compute::Compute,
    known::Known,
    local::{Entry, LocalCache},
    shared::{CacheStore, millis},
};
pub use self::{
    options::{CacheOptions, Mode, Reading},
    value::{CacheError, Cached, Generation, Source, Value},
};
pub use crate::message::{CacheKey, Prefix};
use crate::{Fleet, drivers, message::Scope, moment, store::Invalidate};

/// Shares computations and keeps their values; clones share it.
#[derive(Debug, Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: CacheOptions,
    cache: LocalCache,
    computations: Arc<Computations>,
    known: Known,
    shared: Option<CacheStore>,
    /// Counts the sessions with the store: what was said to an earlier one is not gone by.
    epoch: RwLock<u64>,
}

/// How much a cache holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// Values kept in this process.
    pub values: usize,
    /// What they count for.
    pub bytes: u64,
    /// Computations under way, and errors that still answer.
    pub computations: usize,
}

impl Cache {
    /// For one process alone.
    #[must_use]
    pub fn local(options: CacheOptions) -> Self {
        Self::over(options, Known::alone(), None)
    }

    /// For all processes of a fleet that cache. Usable at once: a store that has not answered within half a lease of the first
    /// reading is away, and until it answers values are computed at once and not kept. A value of over 1 MiB is never kept,
    /// and shared only in its process.
    #[must_use]
    pub fn shared(fleet: &Fleet, options: CacheOptions) -> Self {
        Self::over(options, Known::nothing(), Some(CacheStore::new(fleet)))
    }

    fn over(options: CacheOptions, known: Known, shared: Option<CacheStore>) -> Self {
        let (cache, computations, epoch) = (LocalCache::new(options.bytes), Arc::default(), RwLock::new(0));
        Self { inner: Arc::new(Inner { options, cache, computations, known, shared, epoch }) }
    }

    /// The value of a key: one that is kept, one that is being computed, or what `compute` gives.
    ///
    /// # Errors
    /// [`CacheError`] of the computation, which all who waited for it get; [`CacheError::Key`] if the key is too long;
    /// [`CacheError::NoTimers`] in a runtime without timers.
    ///
    /// # Cancel safety
    /// A reader may leave at any time; the computation goes on while others wait for it, and is dropped if nobody does.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn get<F, R, V, E>(&self, key: &CacheKey, reading: Reading, compute: F) -> Result<Cached, CacheError>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Future<Output = Result<V, E>> + Send + 'static,
        V: Into<Value>,
        E: Display,
    {
        if let Some(hit) = self.inner.hit(key, reading, Instant::now()) {
            return Ok(hit);
        }
        key.check()?;
        drivers::timers_here().map_err(|_| CacheError::NoTimers)?;
        self.inner.miss(key, reading, compute::boxed(compute)).await
    }

    /// Forgets the value of a key. From the answer on nothing that was computed before is kept, or given to a reader who names
    /// the generation.
    ///
    /// A store that is away is waited for, for as long as the fleet's options say ([`FleetOptions::wait`](crate::FleetOptions::wait),
    /// 10 s by default) and what is under way then takes: only after that it fails.
    ///
    /// # Errors
    /// [`CacheError::Key`]; [`CacheError::Store`] if the store has not confirmed it.
    ///
    /// # Cancel safety
    /// Dropping the future does not undo it: it may take effect.
    pub async fn invalidate(&self, key: &CacheKey) -> Result<Generation, CacheError> {
        key.check()?;
        self.inner.forget(Scope::of_key(key)).await
    }

    /// Forgets the values of all keys that begin with these parts.
    ///
    /// # Errors
    /// As [`Cache::invalidate`].
    ///
    /// # Cancel safety
    /// As [`Cache::invalidate`].
    pub async fn invalidate_prefix(&self, prefix: &Prefix) -> Result<Generation, CacheError> {
        prefix.check()?;
        self.inner.forget(Scope::of_prefix(prefix)).await
    }

    /// How much it holds.
    #[must_use]
    pub fn holding(&self) -> Holding {
        let (values, bytes) = self.inner.cache.size();
        Holding { values, bytes, computations: self.inner.computations.count() }
    }
}

impl Inner {
    /// The value kept in this process, if the reader may have it.
    fn hit(&self, key: &CacheKey, reading: Reading, now: Instant) -> Option<Cached> {
        if reading.mode != Mode::On || !self.is_valid(now) {
            return None;
        }
        let generation = self.known.generation();
        if self.least(reading) > generation {
            return None;
        }
        let checked = if self.omits(Check::Hit) { 0 } else { generation };
        let entry = self.cache.hit(key, now, checked, || self.known.covering(key))?;
        let landed = Landed { entry, from: From::Store };
        Some(Cached { source: Source::Hit { local: true }, ..cached(landed, false, now, Some(generation)) })
    }

    /// Whether this process may go by what it knows.
    fn is_valid(&self, now: Instant) -> bool {
        self.known.is_valid(now) || self.omits(Check::Window)
    }

    /// The generation that a reader must not be behind.
    fn least(&self, reading: Reading) -> u64 {
        reading.min_generation.filter(|_| !self.omits(Check::Least)).map_or(0, |least| least.0)
    }

    fn omits(&self, check: Check) -> bool {
        self.options.left_out == Some(check)
    }

    async fn miss(self: &Arc<Self>, key: &CacheKey, reading: Reading, compute: Compute) -> Result<Cached, CacheError> {
        let least = self.least(reading);
        if let Some(shared) = &self.shared {
            CacheStore::keep_up(self, shared);
            if least > self.known.generation() && shared.session().await.is_some() {
                // If it fails, what is known stays too little.
                self.learn(shared).await.ok();
            }
        }
        if reading.mode == Mode::Off || least > self.known.generation() {
            return self.compute_alone(compute).await;
        }
        // Asked for before there is a computation: without a runtime nobody joins one.
        let runtime = Handle::current();
        let start = |landing: Landing| {
            let inner = self.clone();
            runtime.spawn(async move { inner.fly(landing, reading.mode, compute).await }).abort_handle()
        };
        let may_join = |computation: &Computation| self.may_join(key, computation, least);
        let line = (key.clone(), reading.mode);
        let kept = || self.hit(key, reading, Instant::now());
        let waiter = match self.computations.board(line, self.known.generation(), may_join, kept, start) {
            Boarded::Waits(waiter) => waiter,
            Boarded::Kept(hit) => return Ok(hit),
        };
        let landed = waiter.outcome().await?;
        Ok(cached(landed, waiter.joined, Instant::now(), None))
    }

    /// Computes for one reader, shares nothing.
    async fn compute_alone(&self, compute: Compute) -> Result<Cached, CacheError> {
        let generation = self.known.generation();
        let value = compute::run(compute, self.options.timeout).await?;
        let now = Instant::now();
        let entry = Entry { value: value.bytes, generation, made: now, expires: now };
        Ok(cached(Landed { entry, from: From::Computation { stored: false } }, false, now, None))
    }

    /// Whether the value of a computation will do for one who comes now: all that was forgotten, but for the last moments, is known
    /// and does not cover it; or, while that is not known, it is from the last moments itself.
    fn may_join(&self, key: &CacheKey, computation: &Computation, least: u64) -> bool {
        let now = Instant::now();
        if self.is_valid(now) {
            return self.known.covering(key) <= computation.generation() || self.omits(Check::Join);
        }
        let half_lease = self.shared.as_ref().map(|shared| shared.half_lease).unwrap_or_default();
        now.saturating_duration_since(computation.as_of()) < half_lease && least <= computation.generation()
    }

    /// A computation, from its begin to its landing.
    async fn fly(self: Arc<Self>, landing: Landing, mode: Mode, compute: Compute) {
        let outcome = match self.shared.as_ref().filter(|_| mode == Mode::On) {
            Some(shared) => self.fly_shared(shared, &landing, compute).await,
            None => {
                let generation = landing.computation.generation();
                let computed = compute::run(compute, self.options.timeout).await;
                computed.map(|value| self.keep_local(landing.key(), mode, value, generation))
            }
        };
        landing.land(outcome, self.options.error_hold).await;
    }

    /// Keeps what was computed, in a cache without a store; not if something that covers it was forgotten since it was begun.
    fn keep_local(&self, key: &CacheKey, mode: Mode, value: Value, generation: u64) -> Landed {
        let ttl = value.ttl.unwrap_or(self.options.ttl);
        let now = Instant::now();
        let entry = Entry { value: value.bytes, generation, made: now, expires: moment::after(now, ttl) };
        let is_overtaken = self.known.covering(key) > generation;
        let stored = mode == Mode::On && !ttl.is_zero() && !is_overtaken && self.cache.keep(key, entry.clone());
        Landed { entry, from: From::Computation { stored } }
    }

    async fn forget(&self, scope: Scope) -> Result<Generation, CacheError> {
        let Some(shared) = &self.shared else { return Ok(Generation(self.known.forget(scope))) };
        let lives_ms = millis(self.options.ttl.max(self.options.timeout));
        let epoch = self.epoch();
        let generation = shared.fleet().ask(Invalidate { scope: scope.clone(), lives_ms }).await?;
        // Those before it may not be known yet: then this one is learnt with them.
        self.within(epoch, || {
            if self.known.generation() + 1 == generation {
                self.known.learn([(scope, generation)], 0, generation);
            }
        });
        Ok(Generation(generation))
    }
}

/// What a reader gets, at this moment; `generation` if more is known of it than that it was valid when it was made.
fn cached(landed: Landed, joined: bool, now: Instant, generation: Option<u64>) -> Cached {
    let source = landed.source(joined);
    let Entry { value, generation: made_at, made, expires } = landed.entry;
    let is_kept = !matches!(source, Source::Computed { stored: false } | Source::Collapsed { stored: false });
    Cached {
        value,
        source,
        generation: Generation(generation.unwrap_or(made_at)),
        age: now.saturating_duration_since(made),
        ttl: is_kept.then(|| expires.saturating_duration_since(now)),
    }
}
