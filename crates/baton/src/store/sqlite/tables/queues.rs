//! Queues: their numbers in the file, and their books.

use rusqlite::{Row, params};

use super::{SqliteTables, int, name, optional_session, uint};
use crate::{
    message::{IdSum, Name},
    store::{
        Books, StoreError,
        engine::{Moved, QueueRecord},
    },
};

/// A queue as it is held during a transaction.
pub(super) struct QueueRow {
    queue: i64,
    record: QueueRecord,
    changed: bool,
}

impl SqliteTables<'_> {
    fn queue_row(&mut self, name: &Name) -> Moved<Option<&mut QueueRow>> {
        if !self.queues.contains_key(name) {
            let Some(fleet) = self.fleet()? else { return Ok(None) };
            let sql = "SELECT * FROM queues WHERE fleet = ?1 AND name = ?2";
            let row = self.one(sql, params![fleet, name.as_str()], |row| {
                Ok(QueueRow { queue: row.get(0)?, record: read_record(row)?, changed: false })
            })?;
            self.queues.insert(name.clone(), row);
        }
        Ok(self.queues.get_mut(name).and_then(Option::as_mut))
    }

    /// The number of a queue, if it was ever named.
    pub(super) fn queue_number(&mut self, name: &Name) -> Moved<Option<i64>> {
        Ok(self.queue_row(name)?.map(|row| row.queue))
    }

    /// The number of a queue that the engine has opened.
    pub(super) fn own_queue(&mut self, name: &Name) -> Moved<i64> {
        let number = self.queue_number(name)?;
        number.ok_or_else(|| StoreError::Damaged(format!("queue {name} is written to but unknown")))
    }

    pub(super) fn read_queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        Ok(self.queue_row(name)?.map(|row| row.record.clone()))
    }

    pub(super) fn write_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        let name = &record.books.queue;
        if let Some(row) = self.queue_row(name)? {
            row.record.clone_from(record);
            row.changed = true;
        } else {
            let fleet = self.own_fleet()?;
            self.run("INSERT INTO queues (fleet, name) VALUES (?1, ?2)", params![fleet, name.as_str()])?;
            let row = QueueRow { queue: self.db.last_insert_rowid(), record: record.clone(), changed: true };
            self.queues.insert(name.clone(), Some(row));
        }
        Ok(())
    }

    pub(super) fn list_queues(&mut self) -> Moved<Vec<QueueRecord>> {
        self.flush_queues()?;
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        self.all("SELECT * FROM queues WHERE fleet = ?1 ORDER BY name", [fleet], read_record)
    }

    pub(super) fn flush_queues(&mut self) -> Moved<()> {
        for row in self.queues.values_mut().flatten().filter(|row| row.changed) {
            let QueueRecord { books, drainer } = &row.record;
            let sql = "UPDATE queues SET paused = ?2, pushed = ?3, ready = ?4, delayed = ?5, in_flight = ?6, \
                       done = ?7, dead = ?8, drained = ?9, requeued = ?10, done_sum = ?11, drained_sum = ?12, \
                       bytes = ?13, stale_pushes = ?14, stale_settles = ?15, dead_seq = ?16, drainer = ?17 \
                       WHERE queue = ?1";
            self.db.prepare_cached(sql)?.execute(params![
                row.queue,
                books.paused,
                int(books.pushed),
                int(books.ready),
                int(books.delayed),
                int(books.in_flight),
                int(books.done),
                int(books.dead),
                int(books.drained),
                int(books.requeued),
                int(books.done_sum.value()),
                int(books.drained_sum.value()),
                int(books.bytes),
                int(books.stale_pushes),
                int(books.stale_settles),
                int(books.dead_seq),
                drainer.map(|drainer| drainer.to_bytes()),
            ])?;
            row.changed = false;
        }
        Ok(())
    }
}

fn read_record(row: &Row<'_>) -> Moved<QueueRecord> {
    let books = Books {
        queue: name(row, 2)?,
        paused: row.get(3)?,
        pushed: uint(row, 4)?,
        ready: uint(row, 5)?,
        delayed: uint(row, 6)?,
        in_flight: uint(row, 7)?,
        done: uint(row, 8)?,
        dead: uint(row, 9)?,
        drained: uint(row, 10)?,
        requeued: uint(row, 11)?,
        done_sum: IdSum::from_u64(uint(row, 12)?),
        drained_sum: IdSum::from_u64(uint(row, 13)?),
        bytes: uint(row, 14)?,
        stale_pushes: uint(row, 15)?,
        stale_settles: uint(row, 16)?,
        dead_seq: uint(row, 17)?,
    };
    Ok(QueueRecord { books, drainer: optional_session(row, 18)? })
}
