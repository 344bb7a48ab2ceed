//! What is kept of a call's events.

use super::{EventPage, ReadEvents};
use crate::store::{
    Refusal,
    engine::{Effect, Moved, Tables, calls},
    operation::EVENTS_AT_ONCE,
};

impl Effect for ReadEvents {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<EventPage> {
        let (call, record) = calls::named(tables, &self.call)?.ok_or(Refusal::NoCall)?;
        let from = self.from.clamp(1, record.next);
        if from < record.first {
            return Err(Refusal::EventsGone { first: record.first }.into());
        }
        let events = tables.events(&call, from, EVENTS_AT_ONCE, self.max_bytes)?;
        Ok(EventPage { from, events, next: record.next, ended: record.end.is_some() })
    }
}
