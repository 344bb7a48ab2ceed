//! What sessions hold, and under which numbers.

use super::MemoryTables;
use crate::{
    message::{Name, SessionId},
    store::engine::{ClaimNumbers, ClaimRecord, Claims, Moved},
};

impl MemoryTables {
    /// The claims of a session by queue and number.
    fn held_by(&self, id: SessionId) -> impl Iterator<Item = (&(Name, u64), &ClaimRecord)> {
        self.claims.get(&id).into_iter().flatten()
    }
}

impl Claims for MemoryTables {
    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>> {
        Ok(self.claims.get(&id).and_then(|claims| claims.get(&(queue.clone(), claim_no))).cloned())
    }

    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()> {
        self.claims.entry(id).or_default().insert((record.queue.clone(), claim_no), record.clone());
        Ok(())
    }

    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()> {
        if let Some(claims) = self.claims.get_mut(&id) {
            claims.remove(&(queue.clone(), claim_no));
        }
        Ok(())
    }

    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>> {
        Ok(self.held_by(id).map(|((_, claim_no), record)| (*claim_no, record.clone())).collect())
    }

    fn last_claim(&mut self, id: SessionId) -> Moved<Option<(u64, ClaimRecord)>> {
        let last = self.claims.get(&id).and_then(|claims| claims.last_key_value());
        Ok(last.map(|((_, claim_no), record)| (*claim_no, record.clone())))
    }

    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>> {
        Ok(self.held_by(id).take(limit).map(|(held, _)| held.clone()).collect())
    }

    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers> {
        Ok(self.numbers.get(&id).and_then(|numbers| numbers.get(queue)).cloned().unwrap_or_default())
    }

    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()> {
        self.numbers.entry(id).or_default().insert(queue.clone(), numbers.clone());
        Ok(())
    }
}
