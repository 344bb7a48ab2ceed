//! What sessions hold, and under which numbers.

use rusqlite::{Row, params};

use super::{
    SqliteTables, int, name,
    sessions::{joined, words},
    text, uint,
};
use crate::{
    message::{Name, SessionId},
    store::{
        StoreError,
        engine::{ClaimNumbers, ClaimRecord, Claims, Moved},
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
}

impl Claims for SqliteTables<'_> {
    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT queue, pieces FROM claims WHERE fleet = ?1 AND session = ?2 AND queue = ?3 AND claim_no = ?4";
        self.one(sql, params![fleet, id.to_bytes(), queue.as_str(), int(claim_no)], |row| read_claim(row, 0))
    }

    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "INSERT OR REPLACE INTO claims VALUES (?1, ?2, ?3, ?4, ?5)";
        let spans = wire::spans(&record.spans);
        self.run(sql, params![fleet, id.to_bytes(), record.queue.as_str(), int(claim_no), spans]).map(drop)
    }

    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM claims WHERE fleet = ?1 AND session = ?2 AND queue = ?3 AND claim_no = ?4";
        self.run(sql, params![fleet, id.to_bytes(), queue.as_str(), int(claim_no)]).map(drop)
    }

    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql =
            "SELECT claim_no, queue, pieces FROM claims WHERE fleet = ?1 AND session = ?2 ORDER BY queue, claim_no";
        self.all(sql, params![fleet, id.to_bytes()], |row| Ok((uint(row, 0)?, read_claim(row, 1)?)))
    }

    fn last_claim(&mut self, id: SessionId) -> Moved<Option<(u64, ClaimRecord)>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT claim_no, queue, pieces FROM claims WHERE fleet = ?1 AND session = ?2 \
                   ORDER BY queue DESC, claim_no DESC LIMIT 1";
        self.one(sql, params![fleet, id.to_bytes()], |row| Ok((uint(row, 0)?, read_claim(row, 1)?)))
    }

    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>> {
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        let sql =
            "SELECT queue, claim_no FROM claims WHERE fleet = ?1 AND session = ?2 ORDER BY queue, claim_no LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sql, params![fleet, id.to_bytes(), limit], |row| Ok((name(row, 0)?, uint(row, 1)?)))
    }

    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers> {
        Ok(self.numbers_row(id, queue)?.numbers.clone())
    }

    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()> {
        let row = self.numbers_row(id, queue)?;
        row.numbers.clone_from(numbers);
        row.changed = true;
        Ok(())
    }
}

fn read_claim(row: &Row<'_>, at: usize) -> Moved<ClaimRecord> {
    Ok(ClaimRecord { queue: name(row, at)?, spans: wire::parse_spans(text(row, at + 1)?)? })
}
