//! Bodies: cut as far as a budget goes, counted as long as their messages are there, removed with the last of them.
//!
//! The bytes of a queue are the sum of what each message that waits, is delayed or is claimed counts for
//! ([`Parcel::share`](crate::message::Parcel::share)). They follow from what is stored and from nothing else, fall with
//! every message that leaves, and are none once the queue is empty. What is stored follows: a parcel goes with its last
//! message, and when an eighth of its messages is left, it is stored once more without the bodies of the others.

use super::{BodyKey, Cut, Moved, QueueRecord, Tables};
use crate::message::{BodyPlace, Gone, Name, Span};

/// As many of a span's messages as the budget allows, with their bodies.
pub(in crate::store) fn cut<T: Tables>(tables: &mut T, queue: &Name, span: &Span, budget: u64) -> Moved<Cut> {
    tables.cut_bodies(queue, BodyKey::of(span), span.offset(), span.range.len, budget)
}

/// Messages of a span have left their home; with the last one the home goes too.
pub(in crate::store) fn release<T: Tables>(tables: &mut T, queue: &mut QueueRecord, span: &Span) -> Moved<()> {
    let name = queue.books.queue.clone();
    let bytes = match span.place {
        BodyPlace::Parcel { first, size } if span.range.len < size => release_part(tables, &name, span, first, size)?,
        _ => tables.drop_bodies(&name, BodyKey::of(span))?,
    };
    let books = &mut queue.books;
    books.bytes = books.bytes.saturating_sub(bytes);
    if books.ready + books.delayed + books.in_flight == 0 {
        // Bodies that were missing are counted still: how many bytes they had is not known.
        books.bytes = 0;
    }
    Ok(())
}

/// The same of some of a parcel's messages; what they counted for.
fn release_part<T: Tables>(tables: &mut T, name: &Name, span: &Span, first: u64, size: u32) -> Moved<u64> {
    let (key, start, len) = (BodyKey::of(span), span.offset(), span.range.len);
    let share = tables.weigh_bodies(name, key, start, len)?;
    let mut gone = tables.gone(name, first, size)?.unwrap_or_else(|| Gone::none(size));
    let before = gone.left();
    gone.set(start, len, true);
    if gone.left() == 0 {
        tables.put_gone(name, first, None)?;
        tables.drop_bodies(name, key)?;
    } else {
        tables.put_gone(name, first, Some(&gone))?;
        if gone.thins(before)
            && let Cut::Some(parcel) = tables.cut_bodies(name, key, 0, size, u64::MAX)?
        {
            tables.replace_bodies(name, key, &parcel.thinned(|index| gone.has(index)))?;
        }
    }
    Ok(share.unwrap_or(0))
}
