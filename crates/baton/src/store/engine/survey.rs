//! Looking at the fleet without moving anything, recounting it, and removing it.

use super::{BodyKey, Line, Moved, Tables, membership::alive};
use crate::{
    message::{IdSum, Name, Piece, Range},
    store::{Found, Kind, Lacking, QueueRecount, Recounted, Refusal, SessionView, SourceView, Survey},
};

pub(super) fn survey<T: Tables>(tables: &mut T, now: u64) -> Moved<Survey> {
    let sessions = tables.sessions()?;
    let sessions = sessions.into_iter().map(|(session, record)| SessionView {
        session,
        kind: record.kind,
        host: record.host,
        pid: record.pid,
        queues: record.queues,
        lease_ms: record.lease_ms,
        join_no: record.join_no,
        joined_ms: record.joined_ms,
        beat_ms: record.beat_ms,
        report: record.report,
    });
    let sessions = sessions.collect();
    let mut sources = Vec::new();
    for (name, record) in tables.sources()? {
        sources.push(SourceView {
            name,
            queue: record.queue,
            holder: alive(tables, record.holder)?,
            epoch: record.epoch,
            cursor: record.cursor,
            ended: record.ended,
        });
    }
    let queues = tables.queues()?.into_iter().map(|queue| queue.books).collect();
    Ok(Survey { now_ms: now, sessions, sources, queues })
}

pub(super) fn recount<T: Tables>(tables: &mut T) -> Moved<Recounted> {
    let mut claims = Vec::new();
    for (id, _) in tables.sessions()? {
        claims.extend(tables.claims(id)?.into_iter().map(|(_, claim)| claim));
    }
    let mut queues = Vec::new();
    for queue in tables.queues()? {
        let name: &Name = &queue.books.queue;
        let mut lacking = Lacking::default();
        let mut found = |tables: &mut T, pieces: &[Piece]| found(tables, name, pieces, &mut lacking);
        let line = tables.line(name, Line::Ready)?;
        let mut ready = found(tables, &line)?;
        let line = tables.line(name, Line::Suspects)?;
        let suspects = found(tables, &line)?;
        ready.add(suspects.count, suspects.sum);
        let line = tables.delayed(name)?;
        let delayed = found(tables, &line)?;
        let mut in_flight = Found::default();
        for claim in claims.iter().filter(|claim| claim.queue == *name) {
            let of_claim = found(tables, &claim.pieces)?;
            in_flight.add(of_claim.count, of_claim.sum);
        }
        let mut dead = Found::default();
        for first in tables.dead_ids(name)? {
            dead.add(1, IdSum::of(Range { first, len: 1 }));
        }
        queues.push(QueueRecount { books: queue.books, ready, delayed, in_flight, dead, lacking });
    }
    Ok(Recounted { queues, held_ms: 0 })
}

/// Counts pieces, and among them those without their bodies.
fn found<T: Tables>(tables: &mut T, queue: &Name, pieces: &[Piece], lacking: &mut Lacking) -> Moved<Found> {
    let mut found = Found::default();
    for piece in pieces {
        let count = u64::from(piece.range.len);
        found.add(count, IdSum::of(piece.range));
        if !tables.has_bodies(queue, BodyKey::of(piece))? {
            lacking.add(count, Some(piece.range.first));
        }
    }
    Ok(found)
}

pub(super) fn purge<T: Tables>(tables: &mut T) -> Moved<()> {
    let nodes = tables.sessions()?.iter().filter(|(_, record)| record.kind == Kind::Node).count() as u64;
    if nodes > 0 {
        return Err(Refusal::NodesAlive { nodes }.into());
    }
    tables.clear()
}
