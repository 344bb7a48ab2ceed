//! The results kept, in the order of their ends.

use bytes::Bytes;

use super::MemoryTables;
use crate::{
    message::{MessageId, Name},
    store::engine::{Moved, Results, results::weight},
};

impl MemoryTables {
    /// Forgets the oldest one, if this is true of its end; what it counted for.
    fn drop_first_result(&mut self, is_over: impl Fn(u64) -> bool) -> Option<u64> {
        let (_, queue, id) = self.result_ends.first().filter(|(end, ..)| is_over(*end)).cloned()?;
        Some(self.forget_result(&queue, id))
    }

    /// Forgets one; what it counted for.
    fn forget_result(&mut self, queue: &Name, id: MessageId) -> u64 {
        let Some((end, result)) = self.results.remove(&(queue.clone(), id)) else { return 0 };
        self.result_ends.remove(&(end, queue.clone(), id));
        self.result_bytes -= weight(result.len() as u64);
        weight(result.len() as u64)
    }
}

impl Results for MemoryTables {
    fn result(&mut self, queue: &Name, id: MessageId) -> Moved<Option<(u64, Bytes)>> {
        Ok(self.results.get(&(queue.clone(), id)).cloned())
    }

    fn put_result(&mut self, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes) -> Moved<()> {
        self.results.insert((queue.clone(), id), (expires_ms, result.clone()));
        self.result_ends.insert((expires_ms, queue.clone(), id));
        self.result_bytes += weight(result.len() as u64);
        Ok(())
    }

    fn drop_result(&mut self, queue: &Name, id: MessageId) -> Moved<()> {
        self.forget_result(queue, id);
        Ok(())
    }

    fn drop_results_of(&mut self, queue: &Name) -> Moved<()> {
        let of_queue = self.results.range((queue.clone(), MessageId(0))..=(queue.clone(), MessageId(u64::MAX)));
        let ids: Vec<MessageId> = of_queue.map(|((_, id), _)| *id).collect();
        for id in ids {
            self.forget_result(queue, id);
        }
        Ok(())
    }

    fn result_bytes(&mut self) -> Moved<u64> {
        Ok(self.result_bytes)
    }

    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()> {
        (0..limit).map_while(|_| self.drop_first_result(|end| end <= now)).for_each(drop);
        Ok(())
    }

    fn drop_oldest_results(&mut self, bytes: u64, limit: u32) -> Moved<()> {
        let mut gone = 0;
        for _ in 0..limit {
            if gone >= bytes {
                break;
            }
            gone += self.drop_first_result(|_| true).unwrap_or(bytes);
        }
        Ok(())
    }
}
