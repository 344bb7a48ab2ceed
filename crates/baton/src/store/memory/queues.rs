//! Queues by their names.

use super::MemoryTables;
use crate::{
    message::Name,
    store::engine::{Moved, QueueRecord, Queues},
};

impl Queues for MemoryTables {
    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        Ok(self.queues.get(name).cloned())
    }

    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        self.queues.insert(record.books.queue.clone(), record.clone());
        Ok(())
    }

    fn queues(&mut self) -> Moved<Vec<QueueRecord>> {
        Ok(self.queues.values().cloned().collect())
    }
}
