//! A session lives: what it holds, what is due, whom to reap, and which queues others see to.

use crate::{
    message::Name,
    store::{
        Beat, Beaten, Kind, MAX_REPORTED_CANCELLED, MAX_REPORTED_CLAIMS, MAX_REPORTED_EXPIRED, PATIENCE_MS,
        engine::{
            Effect, Line, Moved, Tables,
            clock::{advance, alive, visit},
        },
    },
};

impl Effect for Beat {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Beaten> {
        let mut session = visit(tables, self.session)?;
        let meta = advance(tables, now)?;
        session.expires = meta.clock + session.lease_ms;
        session.beat_ms = now;
        session.report = self.report.clone();
        tables.put_session(self.session, &session)?;
        // Who holds a baton offers its source: only what is offered is read, however many sources there are.
        let (mut due, mut held) = (Vec::new(), Vec::new());
        for offer in session.offers.iter().filter(|_| session.kind == Kind::Node) {
            let Some(source) = tables.source(&offer.source)? else { continue };
            if source.holder == Some(self.session) {
                held.push((offer.source.clone(), source.epoch));
            } else if !source.ended && source.defined_as(offer) && alive(tables, source.holder)?.is_none() {
                due.push(offer.source.clone());
            }
        }
        due.sort_unstable();
        held.sort_unstable();
        let stop = meta.stop.filter(|(upto, _)| session.join_no <= *upto).map(|(_, stop)| stop);
        let expired = tables.expired(meta.clock, MAX_REPORTED_EXPIRED)?;
        let claims = tables.held_numbers(self.session, MAX_REPORTED_CLAIMS)?;
        let mut helped = Vec::new();
        for name in &self.asks {
            if is_helped(tables, now, name)? {
                helped.push(name.clone());
            }
        }
        let mut cancelled = tables.told_cancelled(self.session, MAX_REPORTED_CANCELLED)?;
        cancelled.sort_unstable();
        let mut forsaken = tables.looks(now, MAX_REPORTED_EXPIRED)?;
        forsaken.sort_unstable();
        let generation = tables.cache_books()?.generation;
        Ok(Beaten { now_ms: now, due, held, expired, claims, helped, stop, cancelled, forsaken, generation })
    }
}

/// Whether a session without a baton works for the queue, and nothing in it has been claimable for long.
fn is_helped<T: Tables>(tables: &mut T, now: u64, name: &Name) -> Moved<bool> {
    if tables.workers(name)? == 0 {
        return Ok(false);
    }
    let Some(queue) = tables.queue(name)? else { return Ok(true) };
    if queue.books.ready > 0 {
        let front = tables.front(name, Line::Suspects)?.or(tables.front(name, Line::Ready)?);
        if front.is_some_and(|front| front.crashes > 1 || front.born + PATIENCE_MS <= now) {
            return Ok(false);
        }
    }
    let due = if queue.books.delayed > 0 { tables.next_delayed(name)? } else { None };
    Ok(due.is_none_or(|(due, _)| due + PATIENCE_MS > now))
}
