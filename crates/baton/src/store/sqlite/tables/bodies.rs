//! Bodies: stored whole, read in part, removed with their last message.

use std::io;

use rusqlite::{MAIN_DB, params, types::Type};

use super::{SqliteTables, blob, int, uint};
use crate::{
    message::{Gone, Name, Parcel},
    store::{
        StoreError,
        engine::{Bodies, BodyKey, Cut, Moved},
    },
};

/// Parcels up to this size are read whole even for a part of them: opening a parcel for a partial read costs more.
const SMALL: i64 = 3_000;

/// Where a key is in the table: the parcel's first id or the message's own, and which of the two.
const fn place(key: BodyKey) -> (i64, bool) {
    match key {
        BodyKey::Parcel(first) => (int(first), false),
        BodyKey::Own(id) => (int(id.0), true),
    }
}

impl SqliteTables<'_> {
    /// Writes what is changed so far, once a transaction. SQLite reads long values past its cache as long as no page in
    /// it is changed; but the pages of bodies are wanted again when these are removed, which mostly is soon.
    fn begin_to_write(&mut self) -> Moved<()> {
        if !std::mem::replace(&mut self.writes, true) {
            self.flush_sessions()?;
        }
        Ok(())
    }

    /// Reads just what is asked for, as far as it fits.
    fn read_part(&self, parcel: i64, count: u32, start: u32, len: u32, budget: u64) -> Moved<Option<Parcel>> {
        let mut data = self.db.blob_open(MAIN_DB, "parcels", "data", parcel, true)?;
        let size = data.len();
        Parcel::cut_stored(&mut data, size, count, start, len, budget).map_err(|error| unreadable(&error))
    }
}

impl Bodies for SqliteTables<'_> {
    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let (first, own) = place(key);
        let sql = "INSERT INTO parcels (queue, own, first, count, data) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![queue, own, first, parcel.len(), parcel.bytes().as_ref()]).map(drop)
    }

    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut> {
        let number = self.own_queue(queue)?;
        self.begin_to_write()?;
        let (first, own) = place(key);
        let sql = "SELECT parcel, count, CASE WHEN length(data) <= ?4 \
                   OR (?5 = 0 AND ?6 >= count AND ?7 >= length(data)) THEN data END \
                   FROM parcels WHERE queue = ?1 AND first = ?2 AND own = ?3";
        let params = params![number, first, own, SMALL, start, len, super::ordered(budget)];
        let found = self.one(sql, params, |row| {
            let whole = if row.get_ref(2)?.data_type() == Type::Null { None } else { Some(blob(row, 2)?) };
            Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?, whole))
        })?;
        let Some((parcel, count, whole)) = found else { return Ok(Cut::Missing) };
        match whole {
            Some(bytes) => Ok(Cut::of(&Parcel::parse(bytes)?, start, len, budget)),
            None => Ok(self.read_part(parcel, count, start, len, budget)?.map_or(Cut::NoneFits, Cut::Some)),
        }
    }

    fn weigh_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32) -> Moved<Option<u64>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let (first, own) = place(key);
        let sql = "SELECT parcel, count, length(data) FROM parcels WHERE queue = ?1 AND first = ?2 AND own = ?3";
        let found = self.one(sql, params![queue, first, own], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?, uint(row, 2)?))
        })?;
        let Some((parcel, count, bytes)) = found else { return Ok(None) };
        if start == 0 && len >= count {
            return Ok(Some(bytes));
        }
        let mut data = self.db.blob_open(MAIN_DB, "parcels", "data", parcel, true)?;
        Parcel::share_stored(&mut data, count, start, len).map(Some).map_err(|error| unreadable(&error))
    }

    fn replace_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let (first, own) = place(key);
        let sql = "UPDATE parcels SET data = ?4 WHERE queue = ?1 AND first = ?2 AND own = ?3";
        self.run(sql, params![queue, first, own, parcel.bytes().as_ref()]).map(drop)
    }

    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64> {
        let queue = self.own_queue(queue)?;
        let (first, own) = place(key);
        let sql = "SELECT parcel, length(data) FROM parcels WHERE queue = ?1 AND first = ?2 AND own = ?3";
        let found = self.one(sql, params![queue, first, own], |row| Ok((row.get::<_, i64>(0)?, uint(row, 1)?)))?;
        let Some((parcel, bytes)) = found else { return Ok(0) };
        self.run("DELETE FROM parcels WHERE parcel = ?1", [parcel])?;
        Ok(bytes)
    }

    fn gone(&mut self, queue: &Name, parcel: u64, size: u32) -> Moved<Option<Gone>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT gone FROM remainders WHERE queue = ?1 AND first = ?2";
        self.one(sql, params![queue, int(parcel)], |row| Ok(Gone::read(size, row.get(0)?)))
    }

    fn put_gone(&mut self, queue: &Name, parcel: u64, gone: Option<&Gone>) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        match gone {
            Some(gone) => {
                let sql = "INSERT OR REPLACE INTO remainders VALUES (?1, ?2, ?3)";
                self.run(sql, params![queue, int(parcel), gone.bits()])
            }
            None => self.run("DELETE FROM remainders WHERE queue = ?1 AND first = ?2", params![queue, int(parcel)]),
        }
        .map(drop)
    }
}

fn unreadable(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::InvalidData => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unreachable(format!("a parcel could not be read: {error}")),
    }
}
