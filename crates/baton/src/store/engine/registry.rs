//! The error registry: burying, reading, draining in two phases, requeueing.
//!
//! A drainer reads a page, hands it over, and only then disposes of it. One that dies in between leaves the errors
//! where they were; the next drainer gets them again.

use super::{
    BodyKey, Cut, Line, Moved, QueueRecord, Series, SessionRecord, Tables, claim::cut, clock::touch, membership::alive,
    settle::release, waits,
};
use bytes::Bytes;

use crate::{
    message::{Home, IdSum, Parcel, Piece, Range},
    store::{DeadMessage, Disposal, Dispose, Disposed, DrainBegin, Draining, Page, Peek, Refusal, StoreError},
};

/// How a session is named in an error.
pub(super) fn node_name(session: &SessionRecord) -> String {
    format!("{}/{}", session.host, session.pid)
}

/// Why a message that cannot be run any more is an error.
pub(super) const MISSING_BODY: &str = "its body is missing from the store";

/// Moves the messages of a piece from in flight to the registry; one whose body is missing has an empty one there.
pub(super) fn bury<T: Tables>(
    tables: &mut T, now: u64, queue: &mut QueueRecord, piece: &Piece, node: &str, error: &str,
) -> Moved<()> {
    let name = queue.books.queue.clone();
    for first in piece.range.first..piece.range.end() {
        let one = piece.over(Range { first, len: 1 });
        let body = match cut(tables, &name, &one, u64::MAX)? {
            Cut::Some(parcel) => parcel.body(0).unwrap_or_default(),
            Cut::NoneFits | Cut::Missing => Bytes::new(),
        };
        queue.books.dead_seq += 1;
        let message = DeadMessage {
            seq: queue.books.dead_seq,
            id: first,
            attempts: piece.attempts,
            losses: piece.losses,
            born: piece.born,
            at: now,
            node: node.to_owned(),
            error: error.to_owned(),
            body,
        };
        tables.put_dead(&name, &message)?;
    }
    let count = u64::from(piece.range.len);
    queue.books.in_flight -= count;
    queue.books.dead += count;
    release(tables, queue, piece)
}

pub(super) fn begin<T: Tables>(tables: &mut T, now: u64, it: &DrainBegin) -> Moved<Draining> {
    let (_, session) = touch(tables, now, it.session)?;
    let dispose_no = session.dispose_no;
    let Some(mut queue) = tables.queue(&it.queue)? else { return Ok(Draining { upto: 0, dispose_no }) };
    if let Some(holder) = alive(tables, queue.drainer)?.filter(|holder| *holder != it.session) {
        return Err(Refusal::DrainBusy { holder }.into());
    }
    queue.drainer = Some(it.session);
    tables.put_queue(&queue)?;
    Ok(Draining { upto: queue.books.dead_seq, dispose_no })
}

pub(super) fn peek<T: Tables>(tables: &mut T, it: &Peek) -> Moved<Page> {
    Ok(Page { errors: tables.dead_page(&it.queue, it.after, it.upto, it.limit, it.max_bytes)? })
}

pub(super) fn dispose<T: Tables>(tables: &mut T, now: u64, it: &Dispose) -> Moved<Disposed> {
    let (_, mut session) = touch(tables, now, it.session)?;
    if it.dispose_no != session.dispose_no + 1 {
        let answer = tables.answer(it.session, Series::Dispose, it.dispose_no)?;
        let answer = answer.ok_or(Refusal::OutOfTurn { last: session.dispose_no })?;
        let count = answer.parse().map_err(|_| StoreError::Damaged("a kept answer is not a number".into()))?;
        return Ok(Disposed { count });
    }
    let queue = tables.queue(&it.queue)?.filter(|queue| queue.drainer == Some(it.session));
    let mut queue = queue.ok_or(Refusal::NotDrainer)?;
    let mut count = 0;
    for id in &it.ids {
        let Some(message) = tables.take_dead(&it.queue, *id)? else { continue };
        if it.disposal == Disposal::Requeue && message.body.is_empty() {
            tables.put_dead(&it.queue, &message)?;
            continue;
        }
        count += 1;
        let books = &mut queue.books;
        let range = Range { first: *id, len: 1 };
        books.dead -= 1;
        match it.disposal {
            Disposal::Drain => {
                books.drained += 1;
                books.drained_sum = books.drained_sum.plus(IdSum::of(range));
            }
            Disposal::Requeue => {
                let parcel = Parcel::of_stored(&message.body)?;
                books.requeued += 1;
                books.ready += 1;
                books.bytes += parcel.bytes().len() as u64;
                tables.put_bodies(&it.queue, BodyKey::Own(*id), &parcel)?;
                let piece = Piece { home: Home::Own, range, attempts: 0, losses: 0, born: message.born };
                tables.push_back(&it.queue, Line::Ready, &piece)?;
            }
        }
    }
    tables.put_queue(&queue)?;
    if it.disposal == Disposal::Requeue && count > 0 {
        waits::wake(tables, &queue)?;
    }
    session.dispose_no = it.dispose_no;
    tables.put_session(it.session, &session)?;
    tables.put_answer(it.session, Series::Dispose, it.dispose_no, 1, &count.to_string())?;
    Ok(Disposed { count })
}
