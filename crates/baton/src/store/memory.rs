//! The store in this process's memory: the executable model of the contract.
//!
//! Shared by every clone within the process and gone with it. A call runs under one lock, so it is atomic.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{
    Answer, Claim, Clock, DeadMessage, Kind, Operation as _, Place, Reply, Request, Store, StoreError,
    engine::{
        self, BodyKey, ClaimRecord, KeyRecord, Line, Meta, Moved, QueueRecord, Series, SessionRecord, SourceRecord,
        Tables,
    },
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
    changed: Notify,
}

impl MemoryStore {
    /// An empty store that reads its time from `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { shared: Arc::new(Shared { clock, ..Shared::default() }) }
    }

    /// Whether a delayed message of this queue is due.
    pub(crate) fn has_due(&self, queue: &Name) -> bool {
        let now = self.shared.clock.now_ms();
        let tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.delayed.get(queue).and_then(BTreeMap::first_key_value).is_some_and(|((due, _), _)| *due <= now)
    }
}

impl Store for MemoryStore {
    fn call(&self, request: Request) -> Reply<'_, Result<Answer, StoreError>> {
        let answer = {
            let mut tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
            engine::apply(&mut *tables, self.shared.clock.now_ms(), &request)
        };
        if engine::may_wake(&request) {
            self.shared.changed.notify_waiters();
        }
        Box::pin(std::future::ready(answer))
    }

    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn claim_when_ready(&self, claim: Claim, limit: Duration) -> Reply<'_, Result<Answer, StoreError>> {
        Box::pin(async move {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let waiting = {
                let mut tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
                claim.queues.iter().any(|queue| engine::has_ready(&mut *tables, queue).unwrap_or(true))
            };
            if !waiting {
                // Either ending is fine: the claim tells.
                tokio::time::timeout(limit.min(super::MAX_WAIT), changed).await.ok();
            }
            self.call(claim.request()).await
        })
    }
}

/// The records as plain maps.
#[derive(Debug, Default)]
struct MemoryTables {
    meta: Option<Meta>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    answers: BTreeMap<(SessionId, Series, u64), String>,
    claims: BTreeMap<(SessionId, u64), ClaimRecord>,
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
        self.sessions.insert(id, record.clone());
        Ok(())
    }
    fn drop_session(&mut self, id: SessionId) -> Moved<()> {
        self.sessions.remove(&id);
        self.answers.retain(|(owner, ..), _| *owner != id);
        Ok(())
    }
    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>> {
        Ok(self.sessions.iter().map(|(id, record)| (*id, record.clone())).collect())
    }
    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>> {
        let over = self.sessions.iter().filter(|(_, record)| record.expires <= clock);
        let mut over: Vec<_> = over.map(|(id, record)| (record.expires, *id)).collect();
        over.sort_unstable();
        Ok(over.into_iter().take(limit).map(|(_, id)| id).collect())
    }
    fn smallest_lease(&mut self) -> Moved<Option<u64>> {
        Ok(self.sessions.values().map(|record| record.lease_ms).min())
    }
    fn node_count(&mut self) -> Moved<u64> {
        Ok(self.sessions.values().filter(|record| record.kind == Kind::Node).count() as u64)
    }
    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>> {
        Ok(self.answers.get(&(id, series, no)).cloned())
    }
    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()> {
        self.answers.insert((id, series, no), answer.to_owned());
        self.answers.remove(&(id, series, no.wrapping_sub(keep)));
        Ok(())
    }

    fn claim(&mut self, id: SessionId, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        Ok(self.claims.get(&(id, claim_no)).cloned())
    }
    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        self.claims.insert((id, claim_no), record.clone());
        Ok(())
    }
    fn drop_claim(&mut self, id: SessionId, claim_no: u64) -> Moved<()> {
        self.claims.remove(&(id, claim_no));
        Ok(())
    }
    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        let range = self.claims.range((id, 0)..=(id, u64::MAX));
        Ok(range.map(|((_, claim_no), record)| (*claim_no, record.clone())).collect())
    }
    fn claim_numbers(&mut self, id: SessionId) -> Moved<Vec<u64>> {
        Ok(self.claims.range((id, 0)..=(id, u64::MAX)).map(|((_, claim_no), _)| *claim_no).collect())
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
    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Option<Parcel>> {
        let Some(parcel) = self.bodies.get(&(queue.clone(), key)) else {
            return Err(StoreError::Damaged(format!("bodies {key:?} of {queue} are missing")));
        };
        let fitting = parcel.fitting(start, len, usize::try_from(budget).unwrap_or(usize::MAX));
        Ok(parcel.cut(start, fitting))
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
