//! Giving claimed messages back: when a session leaves, when it is lost, and when a worker hands some back.
//!
//! Whatever goes back goes to the front of its line, in the order of ids. A loss splits: spans of at most 16 after
//! the first, single suspects after the second, failed after the fourth. So one message that kills every process that
//! touches it ends as one error, and its neighbours go on.
//!
//! A session that holds much gives it back in several calls, each of them as much as its home says: the first one ends the
//! session, and what is left is its unreaped, of which beats tell as of a session past its lease.

use std::collections::BTreeMap;

use super::{
    Line, Moved, QueueRecord, SessionRecord, Tables, UnreapedClaims, cache, calls, errors, queues::OpenQueues, waits,
};
use crate::{
    message::{MAX_CRASHES, Name, Range, SPLIT_AFTER_CRASH, SessionId, Span},
    store::agreed::{A_CLAIM, LOST, OF_A_CALL},
};

/// What a session gave back.
#[derive(Default)]
pub(in crate::store) struct Returned {
    /// Messages back in each queue.
    pub(in crate::store) back: BTreeMap<Name, u64>,
    /// Messages failed.
    pub(in crate::store) failed: u64,
}

/// Gives back what a session holds, the last claims first, until `most` entries are made; whether something is left.
fn some<T: Tables>(
    tables: &mut T, queues: &mut OpenQueues, now: u64, id: SessionId, unreaped: &UnreapedClaims, most: u64,
) -> Moved<(Returned, bool)> {
    let (mut returned, mut made) = (Returned::default(), 0);
    let mut returning: BTreeMap<Name, Vec<Span>> = BTreeMap::new();
    while made < most {
        let Some((claim_no, mut claim)) = tables.last_claim(id)? else { break };
        let queue = queues.claimed_from(tables, &claim.queue)?;
        let back = returning.entry(claim.queue.clone()).or_default();
        while let Some(span) = claim.spans.pop_if(|_| made < most) {
            let crashes = span.crashes + u32::from(unreaped.lost);
            // Messages to an entry.
            let size = match crashes {
                _ if crashes > MAX_CRASHES => 1,
                _ if !unreaped.lost => span.range.len,
                1 => SPLIT_AFTER_CRASH,
                _ => 1,
            };
            let Range { first, len } = span.range;
            let taken = u32::try_from((most - made).saturating_mul(u64::from(size))).unwrap_or(len).min(len);
            let left = len - taken;
            if left > 0 {
                claim.spans.push(span.over(Range { first, len: left }));
            }
            let span = Span { crashes, ..span.over(Range { first: first + u64::from(left), len: taken }) };
            made += if span.role.is_some() { OF_A_CALL } else { u64::from(taken.div_ceil(size.max(1))) };
            if crashes > MAX_CRASHES {
                let error = format!("lost {crashes} {LOST}");
                errors::bury(tables, now, queue, &span, &unreaped.node, &error)?;
                returned.failed += u64::from(taken);
            } else if span.role.is_some() && !calls::returned(tables, &claim.queue, &span, None)? {
                queue.books.in_flight -= 1;
                calls::cancel_message(tables, now, queue, &span)?;
            } else {
                *returned.back.entry(claim.queue.clone()).or_default() += u64::from(taken);
                split(span, size, back);
            }
        }
        if claim.spans.is_empty() {
            tables.drop_claim(id, &claim.queue, claim_no)?;
        } else {
            tables.put_claim(id, claim_no, &claim)?;
        }
        made = made.saturating_add(A_CLAIM);
    }
    for (name, spans) in returning {
        let queue = queues.claimed_from(tables, &name)?;
        to_front(tables, queue, spans)?;
    }
    let more = made >= most && tables.last_claim(id)?.is_some();
    Ok((returned, more))
}

/// Ends a session, lost or not: others are woken for it, and at most so many entries of what it held go back. What is
/// left is its unreaped.
pub(in crate::store) fn end<T: Tables>(
    tables: &mut T, now: u64, id: SessionId, session: &SessionRecord, lost: bool, most: u64,
) -> Moved<Returned> {
    let mut queues = OpenQueues::default();
    let unreaped = UnreapedClaims { node: errors::node_name(session), lost };
    let (returned, more) = some(tables, &mut queues, now, id, &unreaped, most)?;
    waits::gone(tables, &mut queues, id, session)?;
    cache::gone(tables, id)?;
    queues.close(tables)?;
    tables.drop_session(id)?;
    if more {
        tables.put_unreaped(id, Some(&unreaped))?;
    }
    Ok(returned)
}

/// Gives back more of an unreaped.
pub(in crate::store) fn go_on<T: Tables>(
    tables: &mut T, now: u64, id: SessionId, unreaped: &UnreapedClaims,
) -> Moved<Returned> {
    let (mut queues, most) = (OpenQueues::default(), tables.returned_at_once());
    let (returned, more) = some(tables, &mut queues, now, id, unreaped, most)?;
    queues.close(tables)?;
    if !more {
        tables.put_unreaped(id, None)?;
    }
    Ok(returned)
}

/// Cuts a span into entries of at most so many messages.
fn split(span: Span, size: u32, into: &mut Vec<Span>) {
    let mut first = span.range.first;
    while first < span.range.end() {
        let len = u32::try_from(span.range.end() - first).unwrap_or(size).min(size);
        into.push(span.over(Range { first, len }));
        first += u64::from(len);
    }
}

/// Moves spans from in flight to the front of their lines.
pub(in crate::store) fn to_front<T: Tables>(
    tables: &mut T, queue: &mut QueueRecord, mut spans: Vec<Span>,
) -> Moved<()> {
    spans.sort_by_key(|span| span.range.first);
    let count: u64 = spans.iter().map(|span| u64::from(span.range.len)).sum();
    queue.books.in_flight -= count;
    queue.books.ready += count;
    queue.wakes = queue.wakes.max(usize::from(count > 0));
    for line in [Line::Ready, Line::Suspects] {
        let of_line: Vec<Span> = spans.iter().filter(|span| Line::of(span) == line).copied().collect();
        if !of_line.is_empty() {
            tables.push_front(&queue.books.queue, line, &of_line)?;
        }
    }
    Ok(())
}

/// How many of these spans are suspects.
pub(in crate::store) fn suspects<'a>(spans: impl Iterator<Item = &'a Span>) -> u32 {
    spans.filter(|span| span.is_suspect()).map(|span| span.range.len).sum()
}
