//! Messages coming in: pushes of a source under its baton, submits from outside, follow-ups of a settle.

use super::{BodyKey, KeyRecord, Line, Moved, QueueRecord, Tables};
use crate::{
    message::{CallId, CallRole, Calling, Key, MessageId, Name, Parcel, Span, Submission, SubmissionKey},
    store::SubmissionVerdict,
};

/// Stores a parcel at the end of its queue; its first id.
pub(in crate::store) fn deposit<T: Tables>(
    tables: &mut T, now: u64, queue: &mut QueueRecord, parcel: &Parcel, role: Option<CallRole>,
) -> Moved<u64> {
    let books = &mut queue.books;
    let first = books.pushed + 1;
    books.pushed += u64::from(parcel.len());
    books.ready += u64::from(parcel.len());
    books.bytes += parcel.bytes().len() as u64;
    queue.wakes = 1;
    let books = &queue.books;
    tables.put_bodies(&books.queue, BodyKey::Parcel(first), parcel)?;
    tables.push_back(&books.queue, Line::Ready, &Span { role, ..Span::fresh(first, parcel.len(), now) })?;
    Ok(first)
}

/// What a submission's key already stands for, if it was seen: one body in one queue.
pub(in crate::store) fn seen_before<T: Tables>(
    tables: &mut T, now: u64, submission: &Submission,
) -> Moved<Option<SubmissionVerdict>> {
    let Some(SubmissionKey { key, digest, .. }) = &submission.key else { return Ok(None) };
    let mut known = live_key(tables, now, key)?;
    if let (Some(record), Some(Calling::Begins { share: true, .. })) = (&known, submission.call) {
        // Such a key stands for a call only while that has not ended.
        let call = CallId { queue: record.queue.clone(), id: record.id, born: None };
        known = if tables.call(&call)?.is_some_and(|call| call.end.is_none()) { known } else { None };
    }
    Ok(known.map(|known| match (known.digest, &known.queue) == (*digest, &submission.queue) {
        true if submission.call.is_some() => SubmissionVerdict::Known { first: known.id.0, born: known.born },
        true => SubmissionVerdict::Duplicate { first: known.id.0 },
        false => SubmissionVerdict::Conflict,
    }))
}

fn live_key<T: Tables>(tables: &mut T, now: u64, key: &Key) -> Moved<Option<KeyRecord>> {
    Ok(tables.key(key)?.filter(|record| record.expires_ms > now))
}

/// Remembers that a key stands for the message just stored.
pub(in crate::store) fn keep_key<T: Tables>(
    tables: &mut T, now: u64, queue: &Name, first: u64, key: Option<&SubmissionKey>,
) -> Moved<()> {
    let Some(SubmissionKey { key, digest, lives_ms }) = key else { return Ok(()) };
    let (queue, id, expires_ms) = (queue.clone(), MessageId(first), now + lives_ms);
    tables.put_key(key, &KeyRecord { queue, id, born: now, digest: *digest, expires_ms })
}

/// Whether `bytes` more would go over the bound; an empty queue takes one call of any size.
pub(in crate::store) const fn is_full(queue: &QueueRecord, bytes: u64, max_queue_bytes: u64) -> bool {
    !queue.books.has_room(bytes, max_queue_bytes)
}

pub(in crate::store) const fn ids_used_up(queue: &QueueRecord, count: u64) -> bool {
    queue.books.pushed + count > MessageId::MAX.0
}
