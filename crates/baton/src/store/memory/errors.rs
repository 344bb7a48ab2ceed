//! Errors: messages that failed for good.

use std::{collections::BTreeMap, ops::Bound};

use super::MemoryTables;
use crate::{
    message::{MessageId, Name},
    store::{
        ErrorRecord,
        engine::{Errors, Moved},
    },
};

impl Errors for MemoryTables {
    fn put_error(&mut self, queue: &Name, message: &ErrorRecord) -> Moved<()> {
        self.error_seqs.insert((queue.clone(), message.id), message.seq);
        self.dead.entry(queue.clone()).or_default().insert(message.seq, message.clone());
        Ok(())
    }

    fn error_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<ErrorRecord>> {
        let Some(dead) = self.dead.get(queue).filter(|_| after < upto) else { return Ok(Vec::new()) };
        let page = dead.range((Bound::Excluded(after), Bound::Included(upto)));
        let mut bytes = 0;
        let page = page.take(limit as usize).take_while(|(_, message)| message.fits(&mut bytes, budget));
        Ok(page.map(|(_, message)| message.clone()).collect())
    }

    fn first_errors(&mut self, queue: &Name, limit: u32) -> Moved<Vec<MessageId>> {
        let dead = self.dead.get(queue).into_iter().flat_map(BTreeMap::values);
        Ok(dead.take(limit as usize).map(|message| message.id).collect())
    }

    fn take_error(&mut self, queue: &Name, id: MessageId) -> Moved<Option<ErrorRecord>> {
        let seq = self.error_seqs.remove(&(queue.clone(), id));
        Ok(seq.and_then(|seq| self.dead.get_mut(queue)?.remove(&seq)))
    }

    fn error_ids(&mut self, queue: &Name) -> Moved<Vec<MessageId>> {
        Ok(self.dead.get(queue).into_iter().flat_map(BTreeMap::values).map(|message| message.id).collect())
    }
}
