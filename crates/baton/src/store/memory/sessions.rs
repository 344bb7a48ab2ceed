//! Sessions in the order of their leases, and the answers kept for them.

use super::MemoryTables;
use crate::{
    message::SessionId,
    store::engine::{Moved, Series, SessionRecord, Sessions, UnreapedClaims},
};

impl MemoryTables {
    /// Takes the lease of a session, as it was written last, out of the order of leases.
    fn forget_lease(&mut self, id: SessionId) {
        let Some(known) = self.sessions.get(&id) else { return };
        self.expiries.remove(&(known.expires, id));
        if let Some(count) = self.leases.get_mut(&known.lease_ms) {
            *count -= 1;
            if *count == 0 {
                self.leases.remove(&known.lease_ms);
            }
        }
    }
}

impl Sessions for MemoryTables {
    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>> {
        Ok(self.sessions.get(&id).cloned())
    }

    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()> {
        self.forget_lease(id);
        self.expiries.insert((record.expires, id));
        *self.leases.entry(record.lease_ms).or_default() += 1;
        self.sessions.insert(id, record.clone());
        Ok(())
    }

    fn drop_session(&mut self, id: SessionId) -> Moved<()> {
        self.forget_lease(id);
        self.sessions.remove(&id);
        self.wakes.remove(&id);
        self.batons.remove(&id);
        self.told.remove(&id);
        self.answers.retain(|(owner, ..), _| *owner != id);
        self.claims.remove(&id);
        self.numbers.remove(&id);
        Ok(())
    }

    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>> {
        Ok(self.sessions.iter().map(|(id, record)| (*id, record.clone())).collect())
    }

    /// All of them: a call is one step here anyway, so there are no unreaped.
    fn returned_at_once(&self) -> u64 {
        u64::MAX
    }

    fn unreaped(&mut self, _: SessionId) -> Moved<Option<UnreapedClaims>> {
        Ok(None)
    }

    fn put_unreaped(&mut self, _: SessionId, _: Option<&UnreapedClaims>) -> Moved<()> {
        Ok(())
    }

    fn unreaped_sessions(&mut self) -> Moved<Vec<SessionId>> {
        Ok(Vec::new())
    }

    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>> {
        let over = self.expiries.iter().take_while(|(expires, _)| *expires <= clock);
        Ok(over.take(limit).map(|(_, id)| *id).collect())
    }

    fn smallest_lease(&mut self) -> Moved<Option<u64>> {
        Ok(self.leases.first_key_value().map(|(lease_ms, _)| *lease_ms))
    }

    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>> {
        Ok(self.answers.get(&(id, series, no)).cloned())
    }

    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()> {
        self.answers.insert((id, series, no), answer.to_owned());
        self.answers.remove(&(id, series, no.wrapping_sub(keep)));
        Ok(())
    }
}
