//! Queues: their numbers in the file, and their books. The row of a queue that was removed keeps its last id, under the
//! name behind a space, as no name begins.

use std::sync::LazyLock;

use rusqlite::{Row, params};

use super::{SqliteTables, int, name, optional_session, uint};
use crate::{
    message::{IdSum, Name},
    store::{
        Books, StoreError,
        engine::{Moved, QueueRecord, Queues},
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
            let row = self.one(&READ_ONE, params![fleet, name.as_str()], |row| {
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

    pub(super) fn flush_queues(&mut self) -> Moved<()> {
        for row in self.queues.values_mut().flatten().filter(|row| row.changed) {
            let mut update = self.db.prepare_cached(&WRITE)?;
            update.raw_bind_parameter(1, row.queue)?;
            update.raw_bind_parameter(2, row.record.drainer.map(|drainer| drainer.to_bytes()))?;
            for (place, counter) in (3..).zip(Books::COUNTERS) {
                update.raw_bind_parameter(place, int((counter.get)(&row.record.books)))?;
            }
            update.raw_execute()?;
            row.changed = false;
        }
        Ok(())
    }
}

impl Queues for SqliteTables<'_> {
    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        Ok(self.queue_row(name)?.map(|row| row.record.clone()))
    }

    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        let name = &record.books.queue;
        if let Some(row) = self.queue_row(name)? {
            row.record.clone_from(record);
            row.changed = true;
        } else {
            let fleet = self.own_fleet()?;
            let sql = "UPDATE queues SET name = ?2 WHERE fleet = ?1 AND name = ' ' || ?2 RETURNING queue";
            let former = self.one(sql, params![fleet, name.as_str()], |row| Ok(row.get(0)?))?;
            let queue = match former {
                Some(queue) => queue,
                None => {
                    self.run("INSERT INTO queues (fleet, name) VALUES (?1, ?2)", params![fleet, name.as_str()])?;
                    self.db.last_insert_rowid()
                }
            };
            let row = QueueRow { queue, record: record.clone(), changed: true };
            self.queues.insert(name.clone(), Some(row));
        }
        Ok(())
    }

    fn forget_queue(&mut self, books: &Books) -> Moved<()> {
        let record = QueueRecord { books: books.clone(), drainer: None, wakes: 0 };
        self.put_queue(&record)?;
        self.flush_heads()?;
        self.flush_queues()?;
        let queue = self.own_queue(&books.queue)?;
        self.run("UPDATE queues SET name = ' ' || name WHERE queue = ?1", [queue])?;
        self.queues.insert(books.queue.clone(), None);
        Ok(())
    }

    fn forgotten_queue(&mut self, name: &Name) -> Moved<Option<Books>> {
        let Some(fleet) = self.fleet()? else { return Ok(None) };
        let sql = "SELECT pushed, drained, drained_sum FROM queues WHERE fleet = ?1 AND name = ' ' || ?2";
        self.one(sql, params![fleet, name.as_str()], |row| {
            let (pushed, removed, sum) = (uint(row, 0)?, uint(row, 1)?, IdSum::from_u64(uint(row, 2)?));
            Ok(Books { pushed, removed, removed_sum: sum, ..Books::new(name.clone()) })
        })
    }

    fn queues(&mut self) -> Moved<Vec<QueueRecord>> {
        self.flush_queues()?;
        let Some(fleet) = self.fleet()? else { return Ok(Vec::new()) };
        self.all(&READ_ALL, [fleet], read_record)
    }
}

/// Writes a queue: its number, its drainer, its counters.
static WRITE: LazyLock<String> = LazyLock::new(|| {
    let counters = (3..).zip(Books::COUNTERS).map(|(place, counter)| format!(", {} = ?{place}", counter.name));
    format!("UPDATE queues SET drainer = ?2{} WHERE queue = ?1", counters.collect::<String>())
});

/// What is read of queues: their numbers, names and drainers, and their counters.
static READ: LazyLock<String> = LazyLock::new(|| {
    let counters = Books::COUNTERS.iter().map(|counter| format!(", {}", counter.name));
    format!("SELECT queue, name, drainer{} FROM queues", counters.collect::<String>())
});
static READ_ONE: LazyLock<String> = LazyLock::new(|| format!("{} WHERE fleet = ?1 AND name = ?2", *READ));
static READ_ALL: LazyLock<String> =
    LazyLock::new(|| format!("{} WHERE fleet = ?1 AND name NOT LIKE ' %' ORDER BY name", *READ));

fn read_record(row: &Row<'_>) -> Moved<QueueRecord> {
    let mut books = Books::new(name(row, 1)?);
    for (place, counter) in (3..).zip(Books::COUNTERS) {
        (counter.set)(&mut books, uint(row, place)?);
    }
    Ok(QueueRecord { books, drainer: optional_session(row, 2)?, wakes: 0 })
}
