//! The records of queues: made when a queue is first named. One that is removed leaves its last id behind.
//!
//! A call that gives a queue something says so in its record. Closing the record writes it and wakes one of those who
//! wait: once a queue and call, whatever was given.

use std::collections::BTreeMap;

use super::{Moved, QueueRecord, Tables, waits};
use crate::{
    message::Name,
    store::{Books, StoreError},
};

/// The record of a queue, made if this is the first time it is named.
pub(in crate::store) fn open_queue<T: Tables>(tables: &mut T, name: &Name) -> Moved<QueueRecord> {
    if let Some(record) = tables.queue(name)? {
        return Ok(record);
    }
    let books = tables.forgotten_queue(name)?.unwrap_or_else(|| Books::new(name.clone()));
    let record = QueueRecord { books, drainer: None, wakes: 0 };
    tables.put_queue(&record)?;
    Ok(record)
}

/// A queue that must exist because something of it is claimed.
pub(in crate::store) fn known_queue<T: Tables>(tables: &mut T, name: &Name) -> Moved<QueueRecord> {
    tables.queue(name)?.ok_or_else(|| unknown(name))
}

fn unknown(name: &Name) -> StoreError {
    StoreError::Damaged(format!("queue {name} is claimed from but unknown"))
}

/// Writes a record back, and wakes those of whom it says so.
pub(in crate::store) fn close<T: Tables>(tables: &mut T, queue: &mut QueueRecord) -> Moved<()> {
    let wakes = std::mem::take(&mut queue.wakes);
    tables.put_queue(queue)?;
    if wakes > 0 { waits::wake(tables, queue, wakes) } else { Ok(()) }
}

/// The records a call has open: each read once, and written once when all are closed.
#[derive(Default)]
pub(in crate::store) struct OpenQueues(BTreeMap<Name, QueueRecord>);

impl OpenQueues {
    /// The record of a queue, made if this is the first time it is named.
    pub(in crate::store) fn open<T: Tables>(&mut self, tables: &mut T, name: &Name) -> Moved<&mut QueueRecord> {
        if !self.0.contains_key(name) {
            let record = open_queue(tables, name)?;
            self.0.insert(name.clone(), record);
        }
        self.0.get_mut(name).ok_or_else(|| unknown(name))
    }

    /// The record of a queue, if it was ever named.
    pub(in crate::store) fn known<T: Tables>(
        &mut self, tables: &mut T, name: &Name,
    ) -> Moved<Option<&mut QueueRecord>> {
        if !self.0.contains_key(name) {
            let Some(record) = tables.queue(name)? else { return Ok(None) };
            self.0.insert(name.clone(), record);
        }
        Ok(self.0.get_mut(name))
    }

    /// The record of a queue that must exist because something of it is claimed.
    pub(in crate::store) fn claimed_from<T: Tables>(&mut self, tables: &mut T, name: &Name) -> Moved<&mut QueueRecord> {
        self.known(tables, name)?.ok_or_else(|| unknown(name))
    }

    /// Writes all of them back, in the order of names.
    pub(in crate::store) fn close<T: Tables>(self, tables: &mut T) -> Moved<()> {
        self.0.into_values().try_for_each(|mut queue| close(tables, &mut queue))
    }
}
