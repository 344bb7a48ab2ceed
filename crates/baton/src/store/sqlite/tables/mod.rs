//! The engine's records as rows, seen through one transaction.
//!
//! Sessions with their claim numbers, queues with the front of their lines, and the fleet's own row are read once a
//! transaction and written once, by [`SqliteTables::flush`]: a call touches them several times, and a group of calls
//! often the same ones. That nobody waits for a queue is asked once, too. Everything else goes straight to its table.
//! Whoever lists rows flushes first. After an error the transaction must be rolled back and the tables thrown away;
//! nothing here outlives a transaction, because another process may write the next one.

mod bodies;
mod claims;
mod fleet;
mod keys;
mod lines;
mod queues;
mod registry;
mod sessions;
mod sources;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use rusqlite::{Connection, Params, Row};

use self::{claims::NumbersRow, fleet::FleetRow, lines::Head, queues::QueueRow, sessions::SessionRow};
use crate::{
    message::{Key, Name, Parcel, Piece, SessionId},
    store::{
        DeadMessage, Place, StoreError,
        engine::{
            BodyKey, ClaimNumbers, ClaimRecord, Cut, KeyRecord, Line, Meta, Moved, QueueRecord, Series, SessionRecord,
            SourceRecord, Tables,
        },
    },
};

/// The tables of one fleet within one transaction.
pub(super) struct SqliteTables<'c> {
    db: &'c Connection,
    name: &'c Name,
    /// Read at the first use; inside, nothing if the fleet has no row.
    fleet: Option<Option<FleetRow>>,
    sessions: HashMap<SessionId, Option<SessionRow>>,
    /// The smallest lease, while it is known.
    lease: Option<Option<u64>>,
    queues: BTreeMap<Name, Option<QueueRow>>,
    numbers: HashMap<(SessionId, Name), NumbersRow>,
    /// Queues that nobody waits for.
    unwaited: BTreeSet<Name>,
    /// The only one that waits for a queue, if it was last seen so.
    only_waiter: Option<(Name, SessionId)>,
    heads: HashMap<(i64, Line), Head>,
    /// The last place given out at the back of a line; a larger one than is taken does no harm.
    backs: HashMap<(i64, Line), i64>,
    woken: BTreeSet<(SessionId, Name)>,
    /// Whether something was written before bodies were read.
    writes: bool,
}

impl<'c> SqliteTables<'c> {
    /// The tables of the fleet `name`.
    pub(super) fn new(db: &'c Connection, name: &'c Name) -> Self {
        Self {
            db,
            name,
            fleet: None,
            sessions: HashMap::new(),
            lease: None,
            queues: BTreeMap::new(),
            numbers: HashMap::new(),
            unwaited: BTreeSet::new(),
            only_waiter: None,
            heads: HashMap::new(),
            backs: HashMap::new(),
            woken: BTreeSet::new(),
            writes: false,
        }
    }

    /// Writes what was changed and not yet written; due before a commit.
    pub(super) fn flush(&mut self) -> Moved<()> {
        self.flush_fleet()?;
        self.flush_sessions()?;
        self.flush_numbers()?;
        self.flush_heads()?;
        self.flush_queues()
    }

    /// Whom to wake once this is committed, and for which queue.
    pub(super) fn woken(&mut self) -> BTreeSet<(SessionId, Name)> {
        std::mem::take(&mut self.woken)
    }

    /// The first row of a query.
    fn one<T>(&self, sql: &str, params: impl Params, read: impl FnOnce(&Row<'_>) -> Moved<T>) -> Moved<Option<T>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// All rows of a query.
    fn all<T>(&self, sql: &str, params: impl Params, read: impl Fn(&Row<'_>) -> Moved<T>) -> Moved<Vec<T>> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row)?);
        }
        Ok(all)
    }

    /// Each row of a query in turn.
    fn each(&self, sql: &str, params: impl Params, mut take: impl FnMut(&Row<'_>) -> Moved<()>) -> Moved<()> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// Changes rows; how many.
    fn run(&self, sql: &str, params: impl Params) -> Moved<usize> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }
}

/// A number as SQLite keeps it: the same bits, so that every value comes back as it went in.
const fn int(value: u64) -> i64 {
    value.cast_signed()
}

/// A number that SQLite compares: what is beyond its largest integer is as good as that.
fn ordered(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads [`int`].
fn uint(row: &Row<'_>, at: usize) -> Moved<u64> {
    Ok(row.get::<_, i64>(at)?.cast_unsigned())
}

fn name(row: &Row<'_>, at: usize) -> Moved<Name> {
    Ok(Name::new(text(row, at)?)?)
}

fn text<'r>(row: &'r Row<'_>, at: usize) -> Moved<&'r str> {
    row.get_ref(at)?.as_str().map_err(|error| StoreError::Damaged(format!("column {at}: {error}")))
}

fn blob(row: &Row<'_>, at: usize) -> Moved<Bytes> {
    let blob = row.get_ref(at)?.as_blob().map_err(|error| StoreError::Damaged(format!("column {at}: {error}")))?;
    Ok(Bytes::copy_from_slice(blob))
}

fn piece(row: &Row<'_>, at: usize) -> Moved<Piece> {
    Ok(text(row, at)?.parse()?)
}

fn session_id(row: &Row<'_>, at: usize) -> Moved<SessionId> {
    Ok(SessionId::from_u128(u128::from_be_bytes(row.get(at)?)))
}

fn optional_session(row: &Row<'_>, at: usize) -> Moved<Option<SessionId>> {
    let bytes: Option<[u8; 16]> = row.get(at)?;
    Ok(bytes.map(|bytes| SessionId::from_u128(u128::from_be_bytes(bytes))))
}

impl Tables for SqliteTables<'_> {
    fn meta(&mut self) -> Moved<Meta> {
        self.read_meta()
    }
    fn put_meta(&mut self, meta: &Meta) -> Moved<()> {
        self.write_meta(meta)
    }

    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>> {
        self.read_session(id)
    }
    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()> {
        self.write_session(id, record)
    }
    fn drop_session(&mut self, id: SessionId) -> Moved<()> {
        self.remove_session(id)
    }
    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>> {
        self.list_sessions()
    }
    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>> {
        self.list_expired(clock, limit)
    }
    fn smallest_lease(&mut self) -> Moved<Option<u64>> {
        self.read_smallest_lease()
    }
    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>> {
        self.read_answer(id, series, no)
    }
    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()> {
        self.write_answer(id, series, no, keep, answer)
    }

    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        self.read_claim(id, queue, claim_no)
    }
    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        self.write_claim(id, claim_no, record)
    }
    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()> {
        self.remove_claim(id, queue, claim_no)
    }
    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        self.list_claims(id)
    }
    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>> {
        self.list_held_numbers(id, limit)
    }
    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers> {
        self.read_numbers(id, queue)
    }
    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()> {
        self.write_numbers(id, queue, numbers)
    }

    fn add_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()> {
        self.enter_waiter(queue, id, now)
    }
    fn is_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool> {
        self.has_waiter(queue, id)
    }
    fn drop_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()> {
        self.remove_waiter(queue, id)
    }
    fn is_waited_for(&mut self, queue: &Name) -> Moved<bool> {
        self.has_waiters(queue)
    }
    fn waits_of(&mut self, id: SessionId) -> Moved<Vec<Name>> {
        self.list_waits(id)
    }
    fn each_waiter(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()> {
        self.show_waiters(queue, show)
    }
    fn ring(&mut self, id: SessionId, queue: &Name) -> Moved<()> {
        self.woken.insert((id, queue.clone()));
        Ok(())
    }
    fn batons(&mut self, id: SessionId) -> Moved<u64> {
        self.read_batons(id)
    }
    fn put_batons(&mut self, id: SessionId, count: u64) -> Moved<()> {
        self.write_batons(id, count)
    }
    fn workers(&mut self, queue: &Name) -> Moved<u64> {
        self.read_workers(queue)
    }
    fn put_workers(&mut self, queue: &Name, count: u64) -> Moved<()> {
        self.write_workers(queue, count)
    }

    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>> {
        self.read_source(name)
    }
    fn put_source(&mut self, name: &Name, record: &SourceRecord) -> Moved<()> {
        self.write_source(name, record)
    }
    fn drop_source(&mut self, name: &Name) -> Moved<()> {
        self.remove_source(name)
    }
    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>> {
        self.list_sources()
    }

    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        self.read_queue(name)
    }
    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        self.write_queue(record)
    }
    fn queues(&mut self) -> Moved<Vec<QueueRecord>> {
        self.list_queues()
    }

    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>> {
        self.read_front(queue, line)
    }
    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()> {
        self.move_front(queue, line, rest)
    }
    fn push_back(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()> {
        self.append(queue, line, piece)
    }
    fn push_front(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()> {
        self.prepend(queue, line, pieces)
    }
    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>> {
        self.list_line(queue, line)
    }

    fn put_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()> {
        self.write_delayed(queue, due, piece)
    }
    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>> {
        self.read_next_delayed(queue)
    }
    fn drop_delayed(&mut self, queue: &Name, due: u64, id: u64) -> Moved<()> {
        self.remove_delayed(queue, due, id)
    }
    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>> {
        self.list_delayed(queue)
    }

    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        self.write_bodies(queue, key, parcel)
    }
    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut> {
        self.read_cut(queue, key, start, len, budget)
    }
    fn has_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<bool> {
        self.knows_bodies(queue, key)
    }
    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64> {
        self.remove_bodies(queue, key)
    }
    fn left(&mut self, queue: &Name, parcel: u64) -> Moved<Option<u32>> {
        self.read_left(queue, parcel)
    }
    fn put_left(&mut self, queue: &Name, parcel: u64, left: Option<u32>) -> Moved<()> {
        self.write_left(queue, parcel, left)
    }

    fn put_dead(&mut self, queue: &Name, message: &DeadMessage) -> Moved<()> {
        self.write_dead(queue, message)
    }
    fn dead_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<DeadMessage>> {
        self.list_dead(queue, after..upto, limit, budget)
    }
    fn take_dead(&mut self, queue: &Name, id: u64) -> Moved<Option<DeadMessage>> {
        self.remove_dead(queue, id)
    }
    fn dead_ids(&mut self, queue: &Name) -> Moved<Vec<u64>> {
        self.list_dead_ids(queue)
    }

    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>> {
        self.read_key(key)
    }
    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()> {
        self.write_key(key, record)
    }
    fn key_count(&mut self) -> Moved<u64> {
        self.count_keys()
    }
    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<()> {
        self.remove_expired_keys(now, limit)
    }

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>> {
        self.read_bookmark(key)
    }
    fn put_bookmark(&mut self, key: &Key, place: &Place) -> Moved<()> {
        self.write_bookmark(key, place)
    }

    fn result(&mut self, queue: &Name, id: u64) -> Moved<Option<(u64, Bytes)>> {
        self.read_result(queue, id)
    }
    fn put_result(&mut self, queue: &Name, id: u64, expires_ms: u64, result: &Bytes) -> Moved<()> {
        self.write_result(queue, id, expires_ms, result)
    }
    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        self.remove_expired_results(now, limit)
    }

    fn clear(&mut self) -> Moved<()> {
        self.remove_fleet()
    }
}
