//! Queues by their names.

use super::MemoryTables;
use crate::{
    message::Name,
    store::{
        Books,
        engine::{Moved, QueueRecord, Queues},
    },
};

impl Queues for MemoryTables {
    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>> {
        Ok(self.queues.get(name).cloned())
    }

    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()> {
        self.forgotten_queues.remove(&record.books.queue);
        self.queues.insert(record.books.queue.clone(), record.clone());
        Ok(())
    }

    fn forget_queue(&mut self, books: &Books) -> Moved<()> {
        self.queues.remove(&books.queue);
        self.forgotten_queues.insert(books.queue.clone(), books.clone());
        Ok(())
    }

    fn forgotten_queue(&mut self, name: &Name) -> Moved<Option<Books>> {
        Ok(self.forgotten_queues.get(name).cloned())
    }

    fn queues(&mut self) -> Moved<Vec<QueueRecord>> {
        Ok(self.queues.values().cloned().collect())
    }
}
