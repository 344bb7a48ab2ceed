//! The fleet's own row: its number in the file, its clock, how many keys it keeps, and what its results and ended calls count for.

use rusqlite::params;

use super::{super::remains, SqliteTables, int, text, uint};
use crate::store::{
    Stop,
    engine::{Fleet, Meta, Moved},
};

/// The row as it is held during a transaction.
pub(super) struct FleetRow {
    pub(super) fleet: i64,
    pub(super) meta: Meta,
    pub(super) keys: u64,
    /// What its results count for.
    pub(super) results: u64,
    /// What its calls that have ended count for.
    pub(super) calls: u64,
    pub(super) changed: bool,
}

impl SqliteTables<'_> {
    /// The fleet's row, if it has one.
    pub(super) fn fleet_row(&mut self) -> Moved<Option<&mut FleetRow>> {
        if self.fleet.is_none() {
            let sql = "SELECT fleet, incarnation, clock, last, joins, stop_upto, stop_now, keys, results, calls FROM fleets WHERE name = ?1";
            let row = self.one(sql, [self.name.as_str()], |row| {
                let stop = if row.get(6)? { Stop::Now } else { Stop::Graceful };
                let meta = Meta {
                    incarnation: text(row, 1)?.to_owned(),
                    clock: uint(row, 2)?,
                    last: uint(row, 3)?,
                    joins: uint(row, 4)?,
                    stop: row.get::<_, Option<i64>>(5)?.map(|upto| (upto.cast_unsigned(), stop)),
                };
                let (keys, results, calls) = (uint(row, 7)?, uint(row, 8)?, uint(row, 9)?);
                Ok(FleetRow { fleet: row.get(0)?, meta, keys, results, calls, changed: false })
            })?;
            self.fleet = Some(row);
        }
        Ok(self.fleet.as_mut().and_then(Option::as_mut))
    }

    /// The fleet's number, if it has ever been written.
    pub(super) fn fleet(&mut self) -> Moved<Option<i64>> {
        Ok(self.fleet_row()?.map(|row| row.fleet))
    }

    /// The fleet's row, made if this is its first write.
    pub(super) fn own_row(&mut self) -> Moved<&mut FleetRow> {
        if self.fleet_row()?.is_none() {
            let meta = Meta::new();
            let sql = "INSERT INTO fleets (name, incarnation, clock, last, joins, stop_now, keys) \
                       VALUES (?1, ?2, 0, 0, 0, 0, 0)";
            self.run(sql, params![self.name.as_str(), meta.incarnation])?;
            let fleet = self.db.last_insert_rowid();
            self.fleet = Some(Some(FleetRow { fleet, meta, keys: 0, results: 0, calls: 0, changed: true }));
        }
        self.fleet.as_mut().and_then(Option::as_mut).ok_or_else(|| {
            crate::store::StoreError::Damaged("the row of the fleet was written and is missing".to_owned())
        })
    }

    /// The fleet's number for a write.
    pub(super) fn own_fleet(&mut self) -> Moved<i64> {
        Ok(self.own_row()?.fleet)
    }

    pub(super) fn flush_fleet(&mut self) -> Moved<()> {
        let Some(Some(row)) = self.fleet.as_mut().filter(|row| row.as_ref().is_some_and(|row| row.changed)) else {
            return Ok(());
        };
        row.changed = false;
        let FleetRow { fleet, meta, keys, results, calls, .. } = &*row;
        let sql = "UPDATE fleets SET incarnation = ?2, clock = ?3, last = ?4, joins = ?5, stop_upto = ?6, \
                   stop_now = ?7, keys = ?8, results = ?9, calls = ?10 WHERE fleet = ?1";
        let mut statement = self.db.prepare_cached(sql)?;
        statement.execute(params![
            fleet,
            meta.incarnation,
            int(meta.clock),
            int(meta.last),
            int(meta.joins),
            meta.stop.map(|(upto, _)| int(upto)),
            matches!(meta.stop, Some((_, Stop::Now))),
            int(*keys),
            int(*results),
            int(*calls),
        ])?;
        Ok(())
    }
}

impl Fleet for SqliteTables<'_> {
    fn meta(&mut self) -> Moved<Meta> {
        Ok(self.fleet_row()?.map_or_else(Meta::new, |row| row.meta.clone()))
    }

    fn put_meta(&mut self, meta: &Meta) -> Moved<()> {
        let row = self.own_row()?;
        row.meta = meta.clone();
        row.changed = true;
        Ok(())
    }

    /// Takes the fleet's name away, so that nobody finds its rows, and forgets what was held of them: see `remains`.
    fn clear(&mut self) -> Moved<()> {
        if let Some(fleet) = self.fleet()? {
            self.run(remains::UNNAME, [fleet])?;
        }
        *self = Self { woken: std::mem::take(&mut self.woken), ..Self::new(self.db, self.name) };
        Ok(())
    }
}
