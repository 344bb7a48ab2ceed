//! The store in this process's memory: the executable model of the contract.
//!
//! Shared by every clone within the process and gone with it. A call runs under one lock, so it is atomic.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{
    Answer, Clock, DeadMessage, MAX_WAIT, Place, Reply, Request, Store, StoreError, Waiting, Woken,
    bells::Bells,
    engine::{
        self, BodyKey, ClaimNumbers, ClaimRecord, Cut, KeyRecord, Line, Meta, Moved, QueueRecord, Series,
        SessionRecord, SourceRecord, Tables,
    },
    serve,
};
use crate::message::{Key, Name, Parcel, Piece, SessionId};

/// A store in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tables: Mutex<MemoryTables>,
    clock: Clock,
    bells: Bells,
}

impl Shared {
    fn tables(&self) -> MutexGuard<'_, MemoryTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryStore {
    /// An empty store that reads its time from `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { shared: Arc::new(Shared { clock, ..Shared::default() }) }
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
}

impl Store for MemoryStore {
    fn call(&self, request: Request) -> Reply<'_, Result<Answer, StoreError>> {
        let (answer, rung) = {
            let mut tables = self.shared.tables();
            let answer = engine::apply(&mut *tables, self.shared.clock.now_ms(), &request);
            (answer, std::mem::take(&mut tables.rung))
        };
        rung.into_iter().for_each(|session| self.shared.bells.ring(session));
        Box::pin(std::future::ready(answer))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> Reply<'_, Result<Woken, StoreError>> {
        Box::pin(async move {
            let bell = self.shared.bells.of(session);
            let rung = async {
                loop {
                    let next = bell.sound.notified();
                    tokio::pin!(next);
                    next.as_mut().enable();
                    if let Some(queues) = self.shared.tables().wakes.remove(&session) {
                        return queues;
                    }
                    next.await;
                }
            };
            let queues = tokio::time::timeout(MAX_WAIT, rung).await.unwrap_or_default();
            serve(self, queues.into_iter().collect(), &*waiting).await
        })
    }
}

/// The records as plain maps.
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
    wakes: BTreeMap<SessionId, BTreeSet<Name>>,
    /// Whose lists something was put on during a call.
    rung: Vec<SessionId>,
    batons: BTreeMap<SessionId, u64>,
    workers: BTreeMap<Name, u64>,
    sources: BTreeMap<Name, SourceRecord>,
    queues: BTreeMap<Name, QueueRecord>,
    lines: BTreeMap<(Name, Line), VecDeque<Piece>>,
    delayed: BTreeMap<Name, BTreeMap<(u64, u64), Piece>>,
    bodies: BTreeMap<(Name, BodyKey), Parcel>,
    left: BTreeMap<(Name, u64), u32>,
    dead: BTreeMap<Name, BTreeMap<u64, DeadMessage>>,
    dead_seqs: BTreeMap<(Name, u64), u64>,
    keys: BTreeMap<Key, KeyRecord>,
    key_ends: BTreeSet<(u64, Key)>,
    bookmarks: BTreeMap<Key, Place>,
    results: BTreeMap<(Name, u64), (u64, Bytes)>,
    result_ends: BTreeSet<(u64, Name, u64)>,
}

impl MemoryTables {
    fn in_line(&mut self, queue: &Name, line: Line) -> &mut VecDeque<Piece> {
        self.lines.entry((queue.clone(), line)).or_default()
    }

    /// Takes the lease of a session, as it was written last, out of the order of leases.
    fn forget_lease(&mut self, id: SessionId) {
        let Some(known) = self.sessions.get(&id) else { return };
        self.expiries.remove(&(known.expires, id));
        if let Some(count) = self.leases.get_mut(&known.lease_ms) {
            *count -= 1;
            if *count == 0 {
                self.leases.remove(&known.lease_ms);
            }
        }
    }

    /// The claims of a session by queue and number.
    fn held_by(&self, id: SessionId) -> impl Iterator<Item = (&(Name, u64), &ClaimRecord)> {
        self.claims.get(&id).into_iter().flatten()
    }
}

impl Tables for MemoryTables {
    fn meta(&mut self) -> Moved<Meta> {
        Ok(self.meta.get_or_insert_with(Meta::new).clone())
    }
    fn put_meta(&mut self, meta: &Meta) -> Moved<()> {
        self.meta = Some(meta.clone());
        Ok(())
    }

    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>> {
        Ok(self.sessions.get(&id).cloned())
    }
    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()> {
        self.forget_lease(id);
        self.expiries.insert((record.expires, id));
        *self.leases.entry(record.lease_ms).or_default() += 1;
        self.sessions.insert(id, record.clone());
        Ok(())
    }
    fn drop_session(&mut self, id: SessionId) -> Moved<()> {
        self.forget_lease(id);
        self.sessions.remove(&id);
        self.wakes.remove(&id);
        self.batons.remove(&id);
        self.answers.retain(|(owner, ..), _| *owner != id);
        self.claims.remove(&id);
        self.numbers.remove(&id);
        Ok(())
    }
    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>> {
        Ok(self.sessions.iter().map(|(id, record)| (*id, record.clone())).collect())
    }
    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>> {
        let over = self.expiries.iter().take_while(|(expires, _)| *expires <= clock);
        Ok(over.take(limit).map(|(_, id)| *id).collect())
    }
    fn smallest_lease(&mut self) -> Moved<Option<u64>> {
        Ok(self.leases.first_key_value().map(|(lease_ms, _)| *lease_ms))
    }
    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>> {
        Ok(self.answers.get(&(id, series, no)).cloned())
    }
    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()> {
        self.answers.insert((id, series, no), answer.to_owned());
        self.answers.remove(&(id, series, no.wrapping_sub(keep)));
        Ok(())
    }

    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        Ok(self.claims.get(&id).and_then(|claims| claims.get(&(queue.clone(), claim_no))).cloned())
    }
    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        self.claims.entry(id).or_default().insert((record.queue.clone(), claim_no), record.clone());
        Ok(())
    }
    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()> {
        if let Some(claims) = self.claims.get_mut(&id) {
            claims.remove(&(queue.clone(), claim_no));
        }
        Ok(())
    }
    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        Ok(self.held_by(id).map(|((_, claim_no), record)| (*claim_no, record.clone())).collect())
    }
    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>> {
        Ok(self.held_by(id).take(limit).map(|(held, _)| held.clone()).collect())
    }
    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers> {
        Ok(self.numbers.get(&id).and_then(|numbers| numbers.get(queue)).cloned().unwrap_or_default())
    }
    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()> {
        self.numbers.entry(id).or_default().insert(queue.clone(), numbers.clone());
        Ok(())
    }

    fn add_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()> {
        self.waiters.entry(queue.clone()).or_default().entry(id).or_insert(now);
        Ok(())
    }
    fn is_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool> {
        Ok(self.waiters.get(queue).is_some_and(|waiters| waiters.contains_key(&id)))
    }
    fn drop_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()> {
        if let Some(waiters) = self.waiters.get_mut(queue) {
            waiters.remove(&id);
        }
        Ok(())
    }
    fn is_waited_for(&mut self, queue: &Name) -> Moved<bool> {
        Ok(self.waiters.get(queue).is_some_and(|waiters| !waiters.is_empty()))
    }
    fn waits_of(&mut self, id: SessionId) -> Moved<Vec<Name>> {
        let waits = self.waiters.iter().filter(|(_, waiters)| waiters.contains_key(&id));
        Ok(waits.map(|(queue, _)| queue.clone()).collect())
    }
    fn each_waiter(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()> {
        self.waiters.get(queue).into_iter().flatten().for_each(|(id, since)| show(*since, *id));
        Ok(())
    }
    fn ring(&mut self, id: SessionId, queue: &Name) -> Moved<()> {
        self.wakes.entry(id).or_default().insert(queue.clone());
        self.rung.push(id);
        Ok(())
    }
    fn batons(&mut self, id: SessionId) -> Moved<u64> {
        Ok(self.batons.get(&id).copied().unwrap_or(0))
    }
    fn put_batons(&mut self, id: SessionId, count: u64) -> Moved<()> {
        self.batons.insert(id, count);
        Ok(())
    }
    fn workers(&mut self, queue: &Name) -> Moved<u64> {
        Ok(self.workers.get(queue).copied().unwrap_or(0))
    }
    fn put_workers(&mut self, queue: &Name, count: u64) -> Moved<()> {
        self.workers.insert(queue.clone(), count);
        Ok(())
    }

    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>> {
        Ok(self.sources.get(name).cloned())
    }
    fn put_source(&mut self, name: &Name, record: &SourceRecord) -> Moved<()> {
        self.sources.insert(name.clone(), record.clone());
        Ok(())
    }
    fn drop_source(&mut self, name: &Name) -> Moved<()> {
        self.sources.remove(name);
        Ok(())
    }
    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>> {
        Ok(self.sources.iter().map(|(name, record)| (name.clone(), record.clone())).collect())
    }

    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        Ok(self.queues.get(name).cloned())
    }
    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        self.queues.insert(record.books.queue.clone(), record.clone());
        Ok(())
    }
    fn queues(&mut self) -> Moved<Vec<QueueRecord>> {
        Ok(self.queues.values().cloned().collect())
    }

    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>> {
        Ok(self.in_line(queue, line).front().copied())
    }
    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        waiting.pop_front();
        if let Some(rest) = rest {
            waiting.push_front(*rest);
        }
        Ok(())
    }
    fn push_back(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()> {
        self.in_line(queue, line).push_back(*piece);
        Ok(())
    }
    fn push_front(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()> {
        let waiting = self.in_line(queue, line);
        for piece in pieces.iter().rev() {
            waiting.push_front(*piece);
        }
        Ok(())
    }
    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>> {
        Ok(self.in_line(queue, line).iter().copied().collect())
    }

    fn put_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().insert((due, piece.range.first), *piece);
        Ok(())
    }
    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>> {
        let first = self.delayed.get(queue).and_then(BTreeMap::first_key_value);
        Ok(first.map(|((due, _), piece)| (*due, *piece)))
    }
    fn drop_delayed(&mut self, queue: &Name, due: u64, id: u64) -> Moved<()> {
        self.delayed.entry(queue.clone()).or_default().remove(&(due, id));
        Ok(())
    }
    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>> {
        Ok(self.delayed.get(queue).into_iter().flat_map(BTreeMap::values).copied().collect())
    }

    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        self.bodies.insert((queue.clone(), key), parcel.clone());
        Ok(())
    }
    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut> {
        let Some(parcel) = self.bodies.get(&(queue.clone(), key)) else { return Ok(Cut::Missing) };
        Ok(Cut::of(parcel, start, len, budget))
    }
    fn has_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<bool> {
        Ok(self.bodies.contains_key(&(queue.clone(), key)))
    }
    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64> {
        let gone = self.bodies.remove(&(queue.clone(), key));
        Ok(gone.map_or(0, |parcel| parcel.bytes().len() as u64))
    }
    fn left(&mut self, queue: &Name, parcel: u64) -> Moved<Option<u32>> {
        Ok(self.left.get(&(queue.clone(), parcel)).copied())
    }
    fn put_left(&mut self, queue: &Name, parcel: u64, left: Option<u32>) -> Moved<()> {
        match left {
            Some(left) => self.left.insert((queue.clone(), parcel), left),
            None => self.left.remove(&(queue.clone(), parcel)),
        };
        Ok(())
    }

    fn put_dead(&mut self, queue: &Name, message: &DeadMessage) -> Moved<()> {
        self.dead_seqs.insert((queue.clone(), message.id), message.seq);
        self.dead.entry(queue.clone()).or_default().insert(message.seq, message.clone());
        Ok(())
    }
    fn dead_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<DeadMessage>> {
        let Some(dead) = self.dead.get(queue).filter(|_| after < upto) else { return Ok(Vec::new()) };
        let page = dead.range((Bound::Excluded(after), Bound::Included(upto)));
        let mut bytes = 0;
        let page = page.take(limit as usize).take_while(|(_, message)| message.fits(&mut bytes, budget));
        Ok(page.map(|(_, message)| message.clone()).collect())
    }
    fn take_dead(&mut self, queue: &Name, id: u64) -> Moved<Option<DeadMessage>> {
        let seq = self.dead_seqs.remove(&(queue.clone(), id));
        Ok(seq.and_then(|seq| self.dead.get_mut(queue)?.remove(&seq)))
    }
    fn dead_ids(&mut self, queue: &Name) -> Moved<Vec<u64>> {
        Ok(self.dead.get(queue).into_iter().flat_map(BTreeMap::values).map(|message| message.id).collect())
    }

    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>> {
        Ok(self.keys.get(key).cloned())
    }
    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()> {
        if let Some(old) = self.keys.insert(key.clone(), record.clone()) {
            self.key_ends.remove(&(old.expires_ms, key.clone()));
        }
        self.key_ends.insert((record.expires_ms, key.clone()));
        Ok(())
    }
    fn key_count(&mut self) -> Moved<u64> {
        Ok(self.keys.len() as u64)
    }
    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<()> {
        for _ in 0..limit {
            let Some((_, key)) = self.key_ends.first().filter(|(end, _)| *end <= now).cloned() else { break };
            self.key_ends.pop_first();
            self.keys.remove(&key);
        }
        Ok(())
    }

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>> {
        Ok(self.bookmarks.get(key).copied())
    }
    fn put_bookmark(&mut self, key: &Key, place: &Place) -> Moved<()> {
        self.bookmarks.insert(key.clone(), *place);
        Ok(())
    }

    fn result(&mut self, queue: &Name, id: u64) -> Moved<Option<(u64, Bytes)>> {
        Ok(self.results.get(&(queue.clone(), id)).cloned())
    }
    fn put_result(&mut self, queue: &Name, id: u64, expires_ms: u64, result: &Bytes) -> Moved<()> {
        if let Some((old, _)) = self.results.insert((queue.clone(), id), (expires_ms, result.clone())) {
            self.result_ends.remove(&(old, queue.clone(), id));
        }
        self.result_ends.insert((expires_ms, queue.clone(), id));
        Ok(())
    }
    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        for _ in 0..limit {
            let Some((_, queue, id)) = self.result_ends.first().filter(|(end, ..)| *end <= now).cloned() else { break };
            self.result_ends.pop_first();
            self.results.remove(&(queue, id));
        }
        Ok(())
    }

    fn clear(&mut self) -> Moved<()> {
        *self = Self::default();
        Ok(())
    }
}
