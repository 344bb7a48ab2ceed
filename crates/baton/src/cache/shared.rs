//! The store as a cache uses it: who has joined, what is known of invalidations, and single tries of calls.
//!
//! One task, the keeper, holds on to the visitor's session. What the beats tell confirms what is known, for half a lease
//! from when the beat was sent; a generation that is not known yet has the store asked for what was forgotten, and so does a
//! wake-up, which is only for speed. With every new session everything begins anew: the store may have been rolled back,
//! and generations may mean something else.
//!
//! While the store does not answer, nobody waits for it after half a lease: so long the keeper's first joining may take before
//! the store counts as away, and so long calls are tried; after one has failed none is made until a beat is answered.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, task::JoinHandle, time::Instant};

use super::Inner;
use crate::{
    Fleet,
    fleet::StoreSignal,
    message::CacheKey,
    store::{
        self, CacheGet, CacheGetReply, CachePut, CachePutReply, MAX_CACHED_MS, Operation, ReadInvalidations, Release,
        StoreError, notice::Notice, session::Session,
    },
};

/// How long joining is left alone after it failed.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// A generation that no store reaches: nothing was forgotten after it.
const BEYOND: u64 = u64::MAX >> 12;

/// Whether the visitor has joined.
#[derive(Clone, Default)]
enum Standing {
    #[default]
    Starting,
    Joined(Box<Session>),
    Away,
}

/// The store, and what keeps up with it.
pub(super) struct CacheStore {
    fleet: Fleet,
    /// For how long an answer of the store holds, and how long a call to it is tried.
    pub(super) half_lease: Duration,
    standing: Notice<Standing>,
    /// Whether a call has failed since the last beat that was answered.
    is_away: AtomicBool,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl CacheStore {
    pub(super) fn new(fleet: &Fleet) -> Self {
        Self {
            half_lease: fleet.lease() / 2,
            fleet: fleet.clone(),
            standing: Notice::default(),
            is_away: AtomicBool::new(false),
            keeper: Mutex::default(),
        }
    }

    pub(super) const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Has the keeper run, in this runtime if its own is gone.
    pub(super) fn keep_up(inner: &Arc<Inner>, shared: &Self) {
        let mut keeper = shared.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.as_ref().is_none_or(JoinHandle::is_finished) {
            *keeper = Some(tokio::spawn(keep(Arc::downgrade(inner))));
        }
    }

    /// The session, if the store is not away. The first one is waited for until the keeper says that it is.
    pub(super) async fn session(&self) -> Option<Session> {
        let settled = self.standing.until(|standing| !matches!(standing, Standing::Starting));
        // The keeper says so within half a lease; it may have gone with its runtime.
        let standing = tokio::time::timeout(self.half_lease, settled).await.unwrap_or(Standing::Away);
        match standing {
            Standing::Joined(session) if !session.is_over() && !self.is_away.load(Ordering::Relaxed) => Some(*session),
            _ => None,
        }
    }

    /// One try of a call, within half a lease.
    async fn ask<O: Operation>(&self, operation: O) -> Result<O::Answer, StoreError> {
        let answer = tokio::time::timeout(self.half_lease, store::ask(&**self.fleet.store(), operation)).await;
        let answer = answer.unwrap_or_else(|_| Err(StoreError::Unreachable("the store has not answered".to_owned())));
        if answer.as_ref().is_err_and(StoreError::is_retryable) {
            self.is_away.store(true, Ordering::Relaxed);
        }
        answer
    }

    /// What the store has under a key; nothing if it does not answer.
    pub(super) async fn cache_get(
        &self, session: &Session, key: &CacheKey, signal: &StoreSignal, lasts: Duration,
    ) -> Option<CacheGetReply> {
        let (number, lasts_ms) = (signal.number(), millis(lasts));
        // One that is not answered may have been given the right all the same.
        let right = Right { session: session.clone(), key: key.clone(), number, is_held: true };
        let answer = self.ask(CacheGet { session: session.id(), key: key.clone(), number, lasts_ms }).await;
        if answer.is_ok() {
            right.given_back();
        }
        answer.ok()
    }

    /// Hands in what was computed; nothing if the store does not answer.
    pub(super) async fn cache_put(&self, put: CachePut) -> Option<CachePutReply> {
        self.ask(put).await.ok()
    }
}

impl std::fmt::Debug for CacheStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheStore").field("fleet", self.fleet.name()).finish_non_exhaustive()
    }
}

/// The right to compute a value: given up when it is dropped, unless it was given back.
pub(super) struct Right {
    session: Session,
    key: CacheKey,
    number: u64,
    is_held: bool,
}

impl Right {
    pub(super) fn new(session: &Session, key: &CacheKey, number: u64) -> Self {
        Self { session: session.clone(), key: key.clone(), number, is_held: true }
    }

    /// The store knows that it is over.
    pub(super) fn given_back(mut self) {
        self.is_held = false;
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        let Some(runtime) = Handle::try_current().ok().filter(|_| self.is_held) else { return };
        let (session, key, number) = (self.session.clone(), self.key.clone(), self.number);
        runtime.spawn(async move {
            // If that fails the session is over, and its rights with it.
            session.ask(Release { session: session.id(), key, number }).await.ok();
        });
    }
}

/// Keeps up with the store for as long as there is a cache.
async fn keep(cache: Weak<Inner>) {
    loop {
        let Some((fleet, half_lease)) = cache.upgrade().and_then(|inner| {
            let shared = inner.shared.as_ref()?;
            Some((shared.fleet.clone(), shared.half_lease))
        }) else {
            return;
        };
        let mut joining = pin!(join(&cache, &fleet));
        let joined = match tokio::time::timeout(half_lease, &mut joining).await {
            Ok(joined) => joined,
            // Nobody waits for it any more; it goes on.
            Err(_) => {
                if !stand(&cache, Standing::Away) {
                    return;
                }
                joining.await
            }
        };
        match joined {
            Some(session) => {
                serve(&cache, &fleet, &session, half_lease).await;
                if !stand(&cache, Standing::Away) {
                    return;
                }
                // What another store may know by now is not gone by until it was asked.
                if let Some(inner) = cache.upgrade() {
                    inner.known.doubt();
                }
            }
            None if stand(&cache, Standing::Away) => tokio::time::sleep(AFTER_A_FAILURE).await,
            None => return,
        }
    }
}

/// Joins, and begins anew with what the store knows; nothing if the store does not answer.
async fn join(cache: &Weak<Inner>, fleet: &Fleet) -> Option<Session> {
    let session = fleet.session().await.ok()?;
    let inner = cache.upgrade()?;
    let shared = inner.shared.as_ref()?;
    inner.begin_anew();
    inner.learn_since(shared, BEYOND).await.ok()?;
    shared.is_away.store(false, Ordering::Relaxed);
    shared.standing.set(Standing::Joined(Box::new(session.clone())));
    Some(session)
}

/// Says whether the visitor has joined; whether there is a cache still.
fn stand(cache: &Weak<Inner>, standing: Standing) -> bool {
    let Some(inner) = cache.upgrade() else { return false };
    if let Some(shared) = &inner.shared {
        shared.standing.set(standing);
    }
    true
}

/// Follows the beats of a session until it is over, or there is no cache any more.
async fn serve(cache: &Weak<Inner>, fleet: &Fleet, session: &Session, half_lease: Duration) {
    let (mut beats, signal) = (session.beats(), fleet.signal());
    loop {
        let is_beat = tokio::select! {
            biased;
            () = session.over() => return,
            changed = beats.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
            () = signal.woken() => false,
        };
        let Some(inner) = cache.upgrade() else { return };
        let Some(shared) = &inner.shared else { return };
        match session.heart().confirmed().filter(|_| is_beat) {
            Some((sent, generation)) if generation == inner.known.generation() => {
                inner.known.confirm(sent, half_lease);
                shared.is_away.store(false, Ordering::Relaxed);
            }
            _ => {
                // If it fails, what is known is not confirmed, and the next beat tries again.
                let learnt = inner.learn(shared).await;
                if is_beat && learnt.is_ok() {
                    shared.is_away.store(false, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Inner {
    /// A new session: nothing of before holds.
    fn begin_anew(&self) {
        let mut epoch = self.epoch.write().unwrap_or_else(PoisonError::into_inner);
        *epoch += 1;
        self.known.begin_anew();
        self.cache.clear();
        self.computations.displace();
    }

    /// Learns what was forgotten since what is known.
    pub(super) async fn learn(&self, shared: &CacheStore) -> Result<(), StoreError> {
        self.learn_since(shared, self.known.generation()).await
    }

    async fn learn_since(&self, shared: &CacheStore, since: u64) -> Result<(), StoreError> {
        let (epoch, asked) = (self.epoch(), Instant::now());
        let forgotten = shared.ask(ReadInvalidations { since }).await?;
        // With nothing kept nothing is below the floor.
        let floor = if since == BEYOND { 0 } else { forgotten.floor };
        self.within(epoch, || {
            self.known.learn(forgotten.scopes, floor, forgotten.generation);
            self.known.confirm(asked, shared.half_lease);
        });
        Ok(())
    }

    /// The number of the session, for [`Inner::within`].
    pub(super) fn epoch(&self) -> u64 {
        *self.epoch.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with what the store has said, unless that was to an earlier session.
    pub(super) fn within<T>(&self, epoch: u64, act: impl FnOnce() -> T) -> Option<T> {
        let current = self.epoch.read().unwrap_or_else(PoisonError::into_inner);
        (*current == epoch).then(act)
    }
}

/// A time as the store is told it: no longer than it keeps anything, so that none of its sums overflows.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).min(MAX_CACHED_MS)
}
