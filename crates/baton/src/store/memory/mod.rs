//! The store in this process's memory: the executable model of the contract.
//!
//! MemoryState by every clone within the process and gone with it. A call runs under one lock, so it is atomic.

mod bodies;
mod cache;
mod calls;
mod claims;
mod errors;
mod fleet;
mod keys;
mod lines;
mod queues;
mod results;
mod sessions;
mod sources;
mod waiters;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{
    Answer, Books, BoxFuture, Clock, ErrorRecord, MAX_WAIT, Place, Request, Store, StoreError, Waiting, Woken,
    engine::{
        self, BodyKey, CallRecord, ClaimNumbers, ClaimRecord, Hold, KeyRecord, Line, Meta, QueueRecord, Series,
        SessionRecord, SourceRecord,
    },
    memory_signals::Signals,
    serve,
    wake_up::WakeUp,
};
use crate::message::{CallId, Gone, Key, MessageId, Name, Parcel, SessionId, Span};

/// A store in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    tables: Mutex<MemoryTables>,
    clock: Clock,
    /// Up to when real time has passed for the leases, if they go by that and not by `clock`.
    leases: Option<Mutex<Instant>>,
    signals: Signals,
}

impl MemoryState {
    fn tables(&self) -> MutexGuard<'_, MemoryTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, tables: &mut MemoryTables, request: &Request) -> Result<Answer, StoreError> {
        let now = self.clock.now_ms();
        if let Some(leases) = &self.leases {
            let mut passed_until = leases.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = Duration::from_millis(u64::try_from(passed_until.elapsed().as_millis()).unwrap_or(0));
            *passed_until += passed;
            engine::clock::pass(tables, now, passed)?;
        }
        engine::apply(tables, now, request)
    }
}

impl MemoryStore {
    /// An empty store that reads its time from `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { shared: Arc::new(MemoryState { clock, ..MemoryState::default() }) }
    }

    #[cfg(feature = "testing")]
    /// The same store, empty, whose leases go by real time: those who hold them beat by that, whatever `clock` shows.
    pub(crate) fn with_leases_by_real_time(self) -> Self {
        let (clock, leases) = (self.shared.clock.clone(), Some(Mutex::new(Instant::now())));
        Self { shared: Arc::new(MemoryState { clock, leases, ..MemoryState::default() }) }
    }

    #[cfg(feature = "testing")]
    /// Whether a delayed message of this queue is due.
    pub(crate) fn has_due(&self, queue: &Name) -> bool {
        let now = self.shared.clock.now_ms();
        let tables = self.shared.tables();
        tables.delayed.get(queue).and_then(BTreeMap::first_key_value).is_some_and(|((due, _), _)| *due <= now)
    }
}

impl MemoryStore {
    /// For tests: loses the parcel that begins at this id, as only damage could.
    #[doc(hidden)]
    pub fn lose_parcel(&self, queue: &Name, first: u64) {
        let mut tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.bodies.remove(&(queue.clone(), BodyKey::Parcel(first)));
    }

    /// For tests: how many bytes are stored of the parcel that begins at this id.
    #[doc(hidden)]
    #[must_use]
    pub fn parcel_bytes(&self, queue: &Name, first: u64) -> u64 {
        let tables = self.shared.tables();
        tables.bodies.get(&(queue.clone(), BodyKey::Parcel(first))).map_or(0, |parcel| parcel.bytes().len() as u64)
    }
}

impl Store for MemoryStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        let (answer, woken) = {
            let mut tables = self.shared.tables();
            let answer = self.shared.apply(&mut tables, &request);
            (answer, std::mem::take(&mut tables.woken))
        };
        woken.into_iter().for_each(|session| self.shared.signals.wake(session));
        Box::pin(std::future::ready(answer))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        Box::pin(async move {
            let signal = self.shared.signals.of(session);
            let woken = async {
                loop {
                    let next = signal.sound.notified();
                    tokio::pin!(next);
                    next.as_mut().enable();
                    if let Some(wake_ups) = self.shared.tables().wakes.remove(&session) {
                        return wake_ups;
                    }
                    next.await;
                }
            };
            let wake_ups = tokio::time::timeout(MAX_WAIT, woken).await.unwrap_or_default();
            serve(self, wake_ups, &*waiting).await
        })
    }
}

/// The records as plain maps; what is done with them is told a subject a file.
#[derive(Debug, Default)]
struct MemoryTables {
    meta: Option<Meta>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    /// Sessions by when their lease is over, and how many have a lease of each length.
    expiries: BTreeSet<(u64, SessionId)>,
    leases: BTreeMap<u64, usize>,
    answers: BTreeMap<(SessionId, Series, u64), String>,
    claims: BTreeMap<SessionId, BTreeMap<(Name, u64), ClaimRecord>>,
    numbers: BTreeMap<SessionId, BTreeMap<Name, ClaimNumbers>>,
    /// Since when each session waits for a queue.
    waiters: BTreeMap<Name, BTreeMap<SessionId, u64>>,
    /// Wake-up lists.
    wakes: BTreeMap<SessionId, BTreeSet<WakeUp>>,
    /// Whose lists something was put on during a call.
    woken: Vec<SessionId>,
    batons: BTreeMap<SessionId, u64>,
    workers: BTreeMap<Name, u64>,
    sources: BTreeMap<Name, SourceRecord>,
    queues: BTreeMap<Name, QueueRecord>,
    /// What is kept of queues that were removed.
    forgotten_queues: BTreeMap<Name, Books>,
    lines: BTreeMap<(Name, Line), VecDeque<Span>>,
    delayed: BTreeMap<Name, BTreeMap<(u64, MessageId), Span>>,
    bodies: BTreeMap<(Name, BodyKey), Parcel>,
    gone: BTreeMap<(Name, u64), Gone>,
    dead: BTreeMap<Name, BTreeMap<u64, ErrorRecord>>,
    error_seqs: BTreeMap<(Name, MessageId), u64>,
    keys: BTreeMap<Key, KeyRecord>,
    key_ends: BTreeSet<(u64, Key)>,
    bookmarks: BTreeMap<Key, (Option<Name>, Place)>,
    results: BTreeMap<(Name, MessageId), (u64, Bytes)>,
    result_ends: BTreeSet<(u64, Name, MessageId)>,
    /// What they count for.
    result_bytes: u64,
    calls: BTreeMap<CallId, CallRecord>,
    call_ends: BTreeSet<(u64, CallId)>,
    /// What those that have ended count for.
    call_bytes: u64,
    joined: BTreeMap<(Name, MessageId), CallId>,
    holds: BTreeMap<CallId, BTreeMap<(Name, MessageId), Hold>>,
    events: BTreeMap<CallId, BTreeMap<u64, Bytes>>,
    emit_keys: BTreeMap<CallId, BTreeSet<Key>>,
    looks: BTreeMap<CallId, u64>,
    look_order: BTreeSet<(u64, CallId)>,
    /// Calls that sessions are told of as cancelled.
    told: BTreeMap<SessionId, BTreeSet<CallId>>,
    cache: cache::CacheTables,
}
