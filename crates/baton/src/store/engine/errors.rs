//! Errors: burying, reading, draining in two phases, requeueing.
//!
//! A drainer reads a page, hands it over, and only then disposes of it. One that dies in between leaves the errors
//! where they were; the next drainer gets them again.

use bytes::Bytes;

use super::{
    Cut, Moved, QueueRecord, SessionRecord, Tables,
    bodies::{cut, release},
    calls::{self, Fate},
};
use crate::{
    message::{Headers, Range, Span},
    store::ErrorRecord,
};

/// How a session is named in an error.
pub(in crate::store) fn node_name(session: &SessionRecord) -> String {
    format!("{}/{}", session.host, session.pid)
}

/// Moves the messages of a span from in flight to the errors; one whose body is missing has an empty one there.
pub(in crate::store) fn bury<T: Tables>(
    tables: &mut T, now: u64, queue: &mut QueueRecord, span: &Span, node: &str, error: &str,
) -> Moved<()> {
    let name = queue.books.queue.clone();
    for id in span.range.ids() {
        let one = span.over(Range::one(id));
        let (headers, body) = match cut(tables, &name, &one, u64::MAX)? {
            Cut::Some(parcel) => (parcel.headers(0), parcel.body(0).unwrap_or_default()),
            Cut::NoneFits | Cut::Missing => (Headers::default(), Bytes::new()),
        };
        queue.books.failed_seq += 1;
        let message = ErrorRecord {
            seq: queue.books.failed_seq,
            id,
            attempts: span.attempts,
            crashes: span.crashes,
            born: span.born,
            at: now,
            node: node.to_owned(),
            error: error.to_owned(),
            headers,
            body,
        };
        tables.put_error(&name, &message)?;
    }
    let count = u64::from(span.range.len);
    queue.books.in_flight -= count;
    queue.books.failed += count;
    release(tables, queue, span)?;
    calls::ended(tables, now, &name, span, Fate::Failed(error))
}
