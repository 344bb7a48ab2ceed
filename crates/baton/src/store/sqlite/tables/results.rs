//! The results kept.

use bytes::Bytes;
use rusqlite::{Params, params};

use super::{SqliteTables, blob, int, ordered, uint};
use crate::{
    message::{MessageId, Name},
    store::engine::{Moved, Results, results::weight},
};

impl SqliteTables<'_> {
    /// Keeps up with what was added or removed.
    fn count_results(&mut self, count: impl FnOnce(u64) -> u64) -> Moved<()> {
        let row = self.own_row()?;
        row.results = count(row.results);
        row.changed = true;
        Ok(())
    }

    /// Forgets results by a statement that returns the length of each.
    fn forget_results(&mut self, sql: &str, params: impl Params) -> Moved<()> {
        let lengths = self.all(sql, params, |row| uint(row, 0))?;
        if lengths.is_empty() {
            return Ok(());
        }
        let gone: u64 = lengths.into_iter().map(weight).sum();
        self.count_results(|results| results.saturating_sub(gone))
    }
}

impl Results for SqliteTables<'_> {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT expires_ms, result FROM results WHERE queue = ?1 AND id = ?2";
        self.one(sql, params![queue, int(id.0)], |row| Ok((uint(row, 0)?, blob(row, 1)?)))
    }

    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()> {
        let (fleet, queue) = (self.own_fleet()?, self.own_queue(queue)?);
        let sql = "INSERT INTO results (fleet, queue, id, expires_ms, result) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![fleet, queue, int(id.0), ordered(expires_ms), result.as_ref()])?;
        self.count_results(|results| results + weight(result.len() as u64))
    }

    fn drop_result(&mut self, queue: &Name, id: MessageId) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let sql = "DELETE FROM results WHERE queue = ?1 AND id = ?2 RETURNING length(result)";
        self.forget_results(sql, params![queue, int(id.0)])
    }

    fn drop_results_of(&mut self, queue: &Name) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        self.forget_results("DELETE FROM results WHERE queue = ?1 RETURNING length(result)", [queue])
    }

    fn result_bytes(&mut self) -> Moved<u64> {
        Ok(self.fleet_row()?.map_or(0, |row| row.results))
    }

    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM results WHERE entry IN (SELECT entry FROM results \
                   WHERE fleet = ?1 AND expires_ms <= ?2 ORDER BY expires_ms LIMIT ?3) RETURNING length(result)";
        self.forget_results(sql, params![fleet, ordered(now), limit])
    }

    fn drop_oldest_results(&mut self, bytes: u64, limit: u32) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "SELECT entry, length(result) FROM results JOIN queues USING (queue) WHERE results.fleet = ?1 \
                   ORDER BY expires_ms, name, id LIMIT ?2";
        let oldest = self.all(sql, params![fleet, limit], |row| Ok((row.get::<_, i64>(0)?, uint(row, 1)?)))?;
        let mut gone = 0;
        for (entry, length) in oldest {
            if gone >= bytes {
                break;
            }
            gone += weight(length);
            self.run("DELETE FROM results WHERE entry = ?1", [entry])?;
        }
        self.count_results(|results| results.saturating_sub(gone))
    }
}
