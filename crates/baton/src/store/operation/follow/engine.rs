//! Who follows, how far it is, and what comes next.

use super::{EVENTS_AT_ONCE, FollowCall, page};
use crate::store::{
    EventPage, Refusal,
    engine::{Effect, Follower, Moved, Tables, calls, clock::visit},
};

impl Effect for FollowCall {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<EventPage> {
        visit(tables, self.session)?;
        let (call, mut record) = calls::named(tables, &self.call)?.ok_or(Refusal::NoCall)?;
        let from = self.from.clamp(1, record.next);
        if from < record.first {
            return Err(Refusal::EventsGone { first: record.first }.into());
        }
        let events = tables.events(&call, from, EVENTS_AT_ONCE, self.max_bytes)?;
        let ended = record.end.is_some();
        let waits = events.is_empty() && !ended;
        record.followers.insert(self.session, Follower { position: from, number: self.number, waits });
        record.followed_ms = now;
        if let Some(linger_ms) = record.linger_ms.filter(|_| record.open > 0 && !record.is_marked) {
            tables.put_look(&call, Some(now + linger_ms))?;
        }
        tables.put_call(&call, &record)?;
        Ok(page(from, events, record.next, ended))
    }
}
