//! The engine's records as rows, seen through one transaction.
//!
//! Sessions with their claim numbers, queues with the front of their lines, and the fleet's own row are read once a
//! transaction and written once, by [`SqliteTables::flush`]: a call touches them several times, and a group of calls
//! often the same ones. That nobody waits for a queue is asked once, too. Everything else goes straight to its table.
//! Whoever lists rows flushes first. After an error the transaction must be rolled back and the tables thrown away;
//! nothing here outlives a transaction, because another process may write the next one.

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

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use rusqlite::{Connection, Params, Row};

use self::{claims::NumbersRow, fleet::FleetRow, lines::Head, queues::QueueRow, sessions::SessionRow};
use crate::{
    message::{Name, SessionId, Span},
    store::{
        StoreError,
        engine::{CacheBooks, Line, Moved},
        wake_up::WakeUp,
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
    woken: BTreeSet<(SessionId, WakeUp)>,
    /// Whether something was written before bodies were read.
    writes: bool,
    cache_books: Option<CacheBooks>,
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
            cache_books: None,
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

    /// Whom to wake once this is committed, and for what.
    pub(super) fn woken(&mut self) -> BTreeSet<(SessionId, WakeUp)> {
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

fn span(row: &Row<'_>, at: usize) -> Moved<Span> {
    Ok(text(row, at)?.parse()?)
}

fn session_id(row: &Row<'_>, at: usize) -> Moved<SessionId> {
    Ok(SessionId::from_u128(u128::from_be_bytes(row.get(at)?)))
}

fn optional_session(row: &Row<'_>, at: usize) -> Moved<Option<SessionId>> {
    let bytes: Option<[u8; 16]> = row.get(at)?;
    Ok(bytes.map(|bytes| SessionId::from_u128(u128::from_be_bytes(bytes))))
}
