//! The results kept, in the order of their ends.

use bytes::Bytes;

use super::MemoryTables;
use crate::{
    message::{MessageId, Name},
    store::engine::{Moved, Results},
};

impl Results for MemoryTables {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>> {
        Ok(self.results.get(&(queue.clone(), id)).cloned())
    }

    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()> {
        if let Some((old, _)) = self.results.insert((queue.clone(), id), (expires_ms, result.clone())) {
            self.result_ends.remove(&(old, queue.clone(), id));
        }
        self.result_ends.insert((expires_ms, queue.clone(), id));
        Ok(())
    }

    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        for _ in 0..limit {
            let Some((_, queue, id)) = self.result_ends.first().filter(|(end, ..)| *end <= now).cloned() else { break };
            self.result_ends.pop_first();
            self.results.remove(&(queue, id));
        }
        Ok(())
    }
}
