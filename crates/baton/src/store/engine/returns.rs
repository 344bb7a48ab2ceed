//! Giving claimed messages back: when a session leaves, when it is lost, and when a worker hands some back.
//!
//! Whatever goes back goes to the front of its line, in the order of ids. A loss splits: pieces of at most 16 after
//! the first, single suspects after the second, dead after the fourth. So one message that kills every process that
//! touches it ends as one error, and its neighbours go on.

use std::collections::BTreeMap;

use super::{Line, Moved, QueueRecord, SessionRecord, Tables, errors, queues::OpenQueues, waits};
use crate::message::{MAX_LOSSES, Name, Piece, Range, SPLIT_AFTER_LOSS, SessionId};

/// Why a message that was lost too often is an error, after how often it was.
pub(in crate::store) const LOST: &str = "times: each node that ran it died or fell silent";

/// Why a session gives everything back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Why {
    /// It left in good order: no loss is counted.
    Left,
    /// Its lease ran out.
    Lost,
}

/// What a session gave back.
#[derive(Default)]
pub(in crate::store) struct Returned {
    /// Messages back in their queues.
    pub(in crate::store) back: u64,
    /// Messages dead.
    pub(in crate::store) dead: u64,
}

/// Gives back all claims of a session.
pub(in crate::store) fn all<T: Tables>(
    tables: &mut T, queues: &mut OpenQueues, now: u64, id: SessionId, session: &SessionRecord, why: Why,
) -> Moved<Returned> {
    let mut by_queue: BTreeMap<Name, Vec<Piece>> = BTreeMap::new();
    for (claim_no, claim) in tables.claims(id)? {
        tables.drop_claim(id, &claim.queue, claim_no)?;
        by_queue.entry(claim.queue).or_default().extend(claim.pieces);
    }
    let Returned { mut back, mut dead } = Returned::default();
    for (name, pieces) in by_queue {
        let queue = queues.claimed_from(tables, &name)?;
        let mut returning = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let losses = piece.losses + u32::from(why == Why::Lost);
            let piece = Piece { losses, ..piece };
            if losses > MAX_LOSSES {
                let error = format!("lost {losses} {LOST}");
                let node = errors::node_name(session);
                errors::bury(tables, now, queue, &piece, &node, &error)?;
                dead += u64::from(piece.range.len);
            } else {
                back += u64::from(piece.range.len);
                split(piece, why, &mut returning);
            }
        }
        to_front(tables, queue, returning)?;
    }
    Ok(Returned { back, dead })
}

/// Takes out a session that is lost, whatever its lease: what it held goes back, and others are woken for it.
pub(in crate::store) fn lose<T: Tables>(
    tables: &mut T, now: u64, id: SessionId, session: &SessionRecord,
) -> Moved<Returned> {
    let mut queues = OpenQueues::default();
    let returned = all(tables, &mut queues, now, id, session, Why::Lost)?;
    waits::gone(tables, &mut queues, id, session)?;
    queues.close(tables)?;
    tables.drop_session(id)?;
    Ok(returned)
}

/// Cuts a lost piece to the size its losses allow.
fn split(piece: Piece, why: Why, into: &mut Vec<Piece>) {
    let size = match (why, piece.losses) {
        (Why::Left, _) => piece.range.len,
        (Why::Lost, 1) => SPLIT_AFTER_LOSS,
        (Why::Lost, _) => 1,
    };
    let mut first = piece.range.first;
    while first < piece.range.end() {
        let len = u32::try_from(piece.range.end() - first).unwrap_or(size).min(size);
        into.push(piece.over(Range { first, len }));
        first += u64::from(len);
    }
}

/// Moves pieces from in flight to the front of their lines.
pub(in crate::store) fn to_front<T: Tables>(
    tables: &mut T, queue: &mut QueueRecord, mut pieces: Vec<Piece>,
) -> Moved<()> {
    pieces.sort_by_key(|piece| piece.range.first);
    let count: u64 = pieces.iter().map(|piece| u64::from(piece.range.len)).sum();
    queue.books.in_flight -= count;
    queue.books.ready += count;
    queue.wakes = queue.wakes.max(usize::from(count > 0));
    for line in [Line::Ready, Line::Suspects] {
        let of_line: Vec<Piece> = pieces.iter().filter(|piece| Line::of(piece) == line).copied().collect();
        if !of_line.is_empty() {
            tables.push_front(&queue.books.queue, line, &of_line)?;
        }
    }
    Ok(())
}

/// How many of these pieces are suspects.
pub(in crate::store) fn suspects<'a>(pieces: impl Iterator<Item = &'a Piece>) -> u32 {
    pieces.filter(|piece| piece.is_suspect()).map(|piece| piece.range.len).sum()
}
