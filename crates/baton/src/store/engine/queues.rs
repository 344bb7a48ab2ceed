//! The records of queues: made when a queue is first named, and never removed but with the fleet.

use super::{Moved, QueueRecord, Tables};
use crate::{
    message::Name,
    store::{Books, StoreError},
};

/// The record of a queue, made if this is the first time it is named.
pub(in crate::store) fn open_queue<T: Tables>(tables: &mut T, name: &Name) -> Moved<QueueRecord> {
    if let Some(record) = tables.queue(name)? {
        return Ok(record);
    }
    let record = QueueRecord { books: Books::new(name.clone()), drainer: None };
    tables.put_queue(&record)?;
    Ok(record)
}

/// A queue that must exist because something of it is claimed.
pub(in crate::store) fn known_queue<T: Tables>(tables: &mut T, name: &Name) -> Moved<QueueRecord> {
    tables.queue(name)?.ok_or_else(|| StoreError::Damaged(format!("queue {name} is claimed from but unknown")))
}
