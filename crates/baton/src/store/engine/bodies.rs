//! Bodies: cut as far as a budget goes, and removed with their last message.

use super::{BodyKey, Cut, Moved, QueueRecord, Tables};
use crate::message::{Home, Name, Piece};

/// As many of a piece's messages as the budget allows, with their bodies.
pub(in crate::store) fn cut<T: Tables>(tables: &mut T, queue: &Name, piece: &Piece, budget: u64) -> Moved<Cut> {
    tables.cut_bodies(queue, BodyKey::of(piece), piece.offset(), piece.range.len, budget)
}

/// Messages of a piece have left their home; with the last one the home goes too.
pub(in crate::store) fn release<T: Tables>(tables: &mut T, queue: &mut QueueRecord, piece: &Piece) -> Moved<()> {
    let name = queue.books.queue.clone();
    if let Home::Parcel { first, size } = piece.home {
        let before = tables.left(&name, first)?;
        let left = before.unwrap_or(size).saturating_sub(piece.range.len);
        if left > 0 {
            return tables.put_left(&name, first, Some(left));
        }
        if before.is_some() {
            tables.put_left(&name, first, None)?;
        }
    }
    queue.books.bytes -= tables.drop_bodies(&name, BodyKey::of(piece))?;
    let books = &mut queue.books;
    if books.ready + books.delayed + books.in_flight == 0 {
        // Bodies that were missing are counted still: how many bytes they had is not known.
        books.bytes = 0;
    }
    Ok(())
}
