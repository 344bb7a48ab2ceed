//! All spans are counted, and their bodies looked for and weighed.

use crate::{
    message::{IdSum, Name, Range, Span},
    store::{
        Counted, Lacking, QueueRecount, Recount, Recounted,
        engine::{BodyKey, Effect, Line, Moved, Tables},
    },
};

impl Effect for Recount {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Recounted> {
        let mut claims = Vec::new();
        let (sessions, unreaped) = (tables.sessions()?, tables.unreaped_sessions()?);
        for id in sessions.into_iter().map(|(id, _)| id).chain(unreaped) {
            claims.extend(tables.claims(id)?.into_iter().map(|(_, claim)| claim));
        }
        let mut queues = Vec::new();
        for queue in tables.queues()? {
            let name: &Name = &queue.books.queue;
            let mut lacking = Lacking::default();
            let mut found = |tables: &mut T, spans: &[Span]| found(tables, name, spans, &mut lacking);
            let line = tables.line(name, Line::Ready)?;
            let mut ready = found(tables, &line)?;
            let line = tables.line(name, Line::Suspects)?;
            let suspects = found(tables, &line)?;
            ready.join(suspects);
            let line = tables.delayed(name)?;
            let delayed = found(tables, &line)?;
            let mut in_flight = Counted::default();
            for claim in claims.iter().filter(|claim| claim.queue == *name) {
                in_flight.join(found(tables, &claim.spans)?);
            }
            let mut failed = Counted::default();
            for id in tables.error_ids(name)? {
                failed.add(1, IdSum::of(Range::one(id)));
            }
            queues.push(QueueRecount { books: queue.books, ready, delayed, in_flight, failed, lacking });
        }
        Ok(Recounted { queues, held_ms: 0 })
    }
}

/// Counts spans, what they weigh, and those among them without their bodies.
fn found<T: Tables>(tables: &mut T, queue: &Name, spans: &[Span], lacking: &mut Lacking) -> Moved<Counted> {
    let mut found = Counted::default();
    for span in spans {
        let count = u64::from(span.range.len);
        found.add(count, IdSum::of(span.range));
        match tables.weigh_bodies(queue, BodyKey::of(span), span.offset(), span.range.len)? {
            Some(share) => found.bytes += share,
            None => lacking.add(count, Some(span.range.first)),
        }
    }
    Ok(found)
}
