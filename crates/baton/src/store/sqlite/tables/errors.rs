//! Errors: messages that failed for good.

use rusqlite::{Row, params};

use super::{SqliteTables, blob, int, ordered, text, uint};
use crate::{
    message::{Headers, MessageId, Name},
    store::{
        ErrorRecord,
        engine::{Errors, Moved},
    },
};

impl Errors for SqliteTables<'_> {
    fn put_error(&mut self, queue: &Name, it: &ErrorRecord) -> Moved<()> {
        let queue = self.own_queue(queue)?;
        let sql = "INSERT INTO dead (queue, seq, id, attempts, losses, born, at, node, error, headers, body) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.run(
            sql,
            params![
                queue,
                int(it.seq),
                int(it.id.0),
                it.attempts,
                it.crashes,
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
    fn error_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<ErrorRecord>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        let sql = "SELECT seq, id, attempts, losses, born, at, node, error, headers, body FROM dead \
                   WHERE queue = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params![queue, ordered(after), ordered(upto), limit])?;
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

    fn first_errors(&mut self, queue: &Name, limit: u32) -> Moved<Vec<MessageId>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        let sql = "SELECT id FROM dead WHERE queue = ?1 ORDER BY seq LIMIT ?2";
        self.all(sql, params![queue, limit], |row| Ok(MessageId(uint(row, 0)?)))
    }

    fn take_error(&mut self, queue: &Name, id: MessageId) -> Moved<Option<ErrorRecord>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(None) };
        let sql = "SELECT seq, id, attempts, losses, born, at, node, error, headers, body FROM dead \
                   WHERE queue = ?1 AND id = ?2";
        let message = self.one(sql, params![queue, int(id.0)], read_dead)?;
        if message.is_some() {
            self.run("DELETE FROM dead WHERE queue = ?1 AND id = ?2", params![queue, int(id.0)])?;
        }
        Ok(message)
    }

    fn error_ids(&mut self, queue: &Name) -> Moved<Vec<MessageId>> {
        let Some(queue) = self.queue_number(queue)? else { return Ok(Vec::new()) };
        self.all("SELECT id FROM dead WHERE queue = ?1 ORDER BY id", [queue], |row| Ok(MessageId(uint(row, 0)?)))
    }
}

fn read_dead(row: &Row<'_>) -> Moved<ErrorRecord> {
    Ok(ErrorRecord {
        seq: uint(row, 0)?,
        id: MessageId(uint(row, 1)?),
        attempts: row.get(2)?,
        crashes: row.get(3)?,
        born: uint(row, 4)?,
        at: uint(row, 5)?,
        node: text(row, 6)?.to_owned(),
        error: text(row, 7)?.to_owned(),
        headers: Headers::parse(&blob(row, 8)?)?,
        body: blob(row, 9)?,
    })
}
