//! What sessions hold, under which numbers, and which queues they wait for and work for.

use rusqlite::{Row, params};

use super::{
    SqliteTables, int, name, ordered, session_id,
    sessions::{joined, words},
    text, uint,
};
use crate::{
    message::{Name, SessionId},
    store::{
        StoreError,
        engine::{ClaimNumbers, ClaimRecord, Moved},
        wire,
    },
};

/// The claim numbers of a session for a queue, as they are held during a transaction.
#[derive(Default)]
pub(super) struct NumbersRow {
    numbers: ClaimNumbers,
    stored: bool,
    changed: bool,
}

impl SqliteTables<'_> {
    pub(super) fn read_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT queue, pieces FROM claims WHERE fleet = ?1 AND session = ?2 AND queue = ?3 AND claim_no = ?4";
        self.one(sql, params![fleet, id.to_bytes(), queue.as_str(), int(claim_no)], |row| read_claim(row, 0))
    }

    pub(super) fn write_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO claims VALUES (?1, ?2, ?3, ?4, ?5)";
        let pieces = wire::pieces(&record.pieces);
        self.run(sql, params![fleet, id.to_bytes(), record.queue.as_str(), int(claim_no), pieces]).map(drop)
    }

    pub(super) fn remove_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM claims WHERE fleet = ?1 AND session = ?2 AND queue = ?3 AND claim_no = ?4";
        self.run(sql, params![fleet, id.to_bytes(), queue.as_str(), int(claim_no)]).map(drop)
    }

    pub(super) fn list_claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql =
            "SELECT claim_no, queue, pieces FROM claims WHERE fleet = ?1 AND session = ?2 ORDER BY queue, claim_no";
        self.all(sql, params![fleet, id.to_bytes()], |row| Ok((uint(row, 0)?, read_claim(row, 1)?)))
    }

    pub(super) fn list_held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql =
            "SELECT queue, claim_no FROM claims WHERE fleet = ?1 AND session = ?2 ORDER BY queue, claim_no LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql, params![fleet, id.to_bytes(), limit], |row| Ok((name(row, 0)?, uint(row, 1)?)))
    }

    pub(super) fn read_numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers> {
        Ok(self.numbers_row(id, queue)?.numbers.clone())
    }

    pub(super) fn write_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()> {
        let row = self.numbers_row(id, queue)?;
        row.numbers.clone_from(numbers);
        row.changed = true;
        Ok(())
    }

    fn numbers_row(&mut self, id: SessionId, queue: &Name) -> Moved<&mut NumbersRow> {
        let key = (id, queue.clone());
        if !self.numbers.contains_key(&key) {
            let mut row = NumbersRow::default();
            if let Some(fleet) = self.fleet()? {
                let sql = "SELECT high, holes FROM claim_numbers WHERE fleet = ?1 AND session = ?2 AND queue = ?3";
                let found = self.one(sql, params![fleet, id.to_bytes(), queue.as_str()], |row| {
                    let holes = words(text(row, 1)?, |word| word.parse().ok());
                    let holes = holes.ok_or_else(|| StoreError::Damaged("claim numbers are unreadable".to_owned()))?;
                    Ok(ClaimNumbers { high: uint(row, 0)?, holes })
                })?;
                row.stored = found.is_some();
                row.numbers = found.unwrap_or_default();
            }
            self.numbers.insert(key.clone(), row);
        }
        Ok(self.numbers.entry(key).or_default())
    }

    pub(super) fn flush_numbers(&mut self) -> Moved<()> {
        if !self.numbers.values().any(|row| row.changed) {
            return Ok(());
        }
        let fleet = self.own_fleet()?;
        for ((id, queue), row) in self.numbers.iter_mut().filter(|(_, row)| row.changed) {
            let sql = if row.stored {
                "UPDATE claim_numbers SET high = ?4, holes = ?5 WHERE fleet = ?1 AND session = ?2 AND queue = ?3"
            } else {
                "INSERT INTO claim_numbers VALUES (?1, ?2, ?3, ?4, ?5)"
            };
            let holes = joined(row.numbers.holes.iter());
            let mut statement = self.db.prepare_cached(sql)?;
            statement.execute(params![fleet, id.to_bytes(), queue.as_str(), int(row.numbers.high), holes])?;
            (row.stored, row.changed) = (true, false);
        }
        Ok(())
    }

    pub(super) fn enter_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        self.unwaited.remove(queue);
        self.only_waiter = None;
        let sql = "INSERT OR IGNORE INTO waiters VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, params![fleet, queue.as_str(), id.to_bytes(), ordered(now)]).map(drop)
    }

    pub(super) fn has_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool> {
        let Some(fleet) = self.fleet()? else { return Ok(false) };
        let sql = "SELECT 1 FROM waiters WHERE fleet = ?1 AND queue = ?2 AND session = ?3";
        Ok(self.one(sql, params![fleet, queue.as_str(), id.to_bytes()], |_| Ok(()))?.is_some())
    }

    pub(super) fn has_waiters(&mut self, queue: &Name) -> Moved<bool> {
        if self.unwaited.contains(queue) {
            return Ok(false);
        }
        let Some(fleet) = self.fleet()? else { return Ok(false) };
        let sql = "SELECT 1 FROM waiters WHERE fleet = ?1 AND queue = ?2 LIMIT 1";
        let found = self.one(sql, params![fleet, queue.as_str()], |_| Ok(()))?.is_some();
        if !found {
            self.unwaited.insert(queue.clone());
        }
        Ok(found)
    }

    pub(super) fn remove_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()> {
        if self.unwaited.contains(queue) {
            return Ok(());
        }
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM waiters WHERE fleet = ?1 AND queue = ?2 AND session = ?3";
        self.run(sql, params![fleet, queue.as_str(), id.to_bytes()])?;
        if let Some((queue, _)) = self.only_waiter.take_if(|(of, waiter)| of == queue && *waiter == id) {
            self.unwaited.insert(queue);
        }
        Ok(())
    }

    pub(super) fn list_waits(&mut self, id: SessionId) -> Moved<Vec<Name>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql = "SELECT queue FROM waiters WHERE fleet = ?1 AND session = ?2 ORDER BY queue";
        self.all(sql, params![fleet, id.to_bytes()], |row| name(row, 0))
    }

    /// All of them, in no order: an index or a sorter would cost more than the few there are.
    pub(super) fn show_waiters(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()> {
        if self.unwaited.contains(queue) {
            return Ok(());
        }
        let Some(fleet) = self.fleet()? else { return Ok(()) };
        let sql = "SELECT since, session FROM waiters WHERE fleet = ?1 AND queue = ?2";
        let (mut count, mut last) = (0, None);
        self.each(sql, params![fleet, queue.as_str()], |row| {
            let id = session_id(row, 1)?;
            (count, last) = (count + 1, Some(id));
            show(uint(row, 0)?, id);
            Ok(())
        })?;
        match last {
            None => {
                self.unwaited.insert(queue.clone());
            }
            Some(id) => self.only_waiter = (count == 1).then(|| (queue.clone(), id)),
        }
        Ok(())
    }

    pub(super) fn read_batons(&mut self, id: SessionId) -> Moved<u64> {
        let Some(fleet) = self.fleet()? else { return Ok(0) };
        let sql = "SELECT held FROM batons WHERE fleet = ?1 AND session = ?2";
        Ok(self.one(sql, params![fleet, id.to_bytes()], |row| uint(row, 0))?.unwrap_or(0))
    }

    pub(super) fn write_batons(&mut self, id: SessionId, held: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        if held == 0 {
            return self
                .run("DELETE FROM batons WHERE fleet = ?1 AND session = ?2", params![fleet, id.to_bytes()])
                .map(drop);
        }
        let sql = "INSERT OR REPLACE INTO batons VALUES (?1, ?2, ?3)";
        self.run(sql, params![fleet, id.to_bytes(), int(held)]).map(drop)
    }

    pub(super) fn read_workers(&mut self, queue: &Name) -> Moved<u64> {
        let Some(fleet) = self.fleet()? else { return Ok(0) };
        let sql = "SELECT nodes FROM workers WHERE fleet = ?1 AND queue = ?2";
        Ok(self.one(sql, params![fleet, queue.as_str()], |row| uint(row, 0))?.unwrap_or(0))
    }

    pub(super) fn write_workers(&mut self, queue: &Name, nodes: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO workers VALUES (?1, ?2, ?3)";
        self.run(sql, params![fleet, queue.as_str(), int(nodes)]).map(drop)
    }
}

fn read_claim(row: &Row<'_>, at: usize) -> Moved<ClaimRecord> {
    Ok(ClaimRecord { queue: name(row, at)?, pieces: wire::parse_pieces(text(row, at + 1)?)? })
}
