//! The error registry and the results kept.

use std::ops::Range;

use bytes::Bytes;
use rusqlite::{Row, params};

use super::{SqliteTables, blob, int, ordered, text, uint};
use crate::{
    message::{Headers, Name},
    store::{DeadMessage, engine::Moved},
};

impl SqliteTables<'_> {
    pub(super) fn write_dead(&mut self, queue: &Name, it: &DeadMessage) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let sql = "INSERT INTO dead (queue, seq, id, attempts, losses, born, at, node, error, headers, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.run(
            sql,
            params![
                queue,
                int(it.seq),
                int(it.id),
                it.attempts,
                it.losses,
                int(it.born),
                int(it.at),
                it.node,
                it.error,
                it.headers.bytes().as_ref(),
                it.body.as_ref(),
            ],
        )
        .map(drop)
    }

    /// Reads no further than the page goes: bodies may be large.
    pub(super) fn list_dead(
        &mut self, queue: &Name, seqs: Range<u64>, limit: u32, budget: u64,
    ) -> Moved<Vec<DeadMessage>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        let sql = "SELECT seq, id, attempts, losses, born, at, node, error, headers, body FROM dead \
                   WHERE queue = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params![queue, ordered(seqs.start), ordered(seqs.end), limit])?;
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let message = read_dead(row)?;
            if !message.fits(&mut bytes, budget) {
                break;
            }
            page.push(message);
        }
        Ok(page)
    }

    pub(super) fn remove_dead(&mut self, queue: &Name, id: u64) -> Moved<Option<DeadMessage>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT seq, id, attempts, losses, born, at, node, error, headers, body FROM dead \
                   WHERE queue = ?1 AND id = ?2";
        let message = self.one(sql, params![queue, int(id)], read_dead)?;
        if message.is_some() {
            self.run("DELETE FROM dead WHERE queue = ?1 AND id = ?2", params![queue, int(id)])?;
        }
        Ok(message)
    }

    pub(super) fn list_dead_ids(&mut self, queue: &Name) -> Moved<Vec<u64>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        self.all("SELECT id FROM dead WHERE queue = ?1 ORDER BY id", [queue], |row| uint(row, 0))
    }

    pub(super) fn read_result(&mut self, queue: &Name, id: u64) -> Moved<Option<(u64, Bytes)>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT expires_ms, result FROM results WHERE queue = ?1 AND id = ?2";
        self.one(sql, params![queue, int(id)], |row| Ok((uint(row, 0)?, blob(row, 1)?)))
    }

    pub(super) fn write_result(&mut self, queue: &Name, id: u64, expires_ms: u64, result: &Bytes) -> Moved<()> {
        let (fleet, queue) = (self.own_fleet()?, self.own_queue(queue)?);
        let sql = "INSERT OR REPLACE INTO results (fleet, queue, id, expires_ms, result) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(sql, params![fleet, queue, int(id), ordered(expires_ms), result.as_ref()]).map(drop)
    }

    pub(super) fn remove_expired_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        let fleet = self.own_fleet()?;
        let sql = "DELETE FROM results WHERE entry IN (SELECT entry FROM results \
                   WHERE fleet = ?1 AND expires_ms <= ?2 ORDER BY expires_ms LIMIT ?3)";
        self.run(sql, params![fleet, ordered(now), limit]).map(drop)
    }
}

fn read_dead(row: &Row<'_>) -> Moved<DeadMessage> {
    Ok(DeadMessage {
        seq: uint(row, 0)?,
        id: uint(row, 1)?,
        attempts: row.get(2)?,
        losses: row.get(3)?,
        born: uint(row, 4)?,
        at: uint(row, 5)?,
        node: text(row, 6)?.to_owned(),
        error: text(row, 7)?.to_owned(),
        headers: Headers::parse(&blob(row, 8)?)?,
        body: blob(row, 9)?,
    })
}
