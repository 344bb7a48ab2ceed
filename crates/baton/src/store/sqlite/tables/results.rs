//! The results kept.

use bytes::Bytes;
use rusqlite::params;

use super::{SqliteTables, blob, int, ordered, uint};
use crate::{
    message::{MessageId, Name},
    store::engine::{Moved, Results},
};

impl Results for SqliteTables<'_> {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT expires_ms, result FROM results WHERE queue = ?1 AND id = ?2";
        self.one(sql, params![queue, int(id.0)], |row| Ok((uint(row, 0)?, blob(row, 1)?)))
    }

    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()> {
        let (fleet, queue) = (self.own_fleet()?, self.own_queue(queue)?);
        let sql = "INSERT OR REPLACE INTO results (fleet, queue, id, expires_ms, result) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![fleet, queue, int(id.0), ordered(expires_ms), result.as_ref()]).map(drop)
    }

    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM results WHERE entry IN (SELECT entry FROM results \
                   WHERE fleet = ?1 AND expires_ms <= ?2 ORDER BY expires_ms LIMIT ?3)";
        self.run(sql, params![fleet, ordered(now), limit]).map(drop)
    }
}
