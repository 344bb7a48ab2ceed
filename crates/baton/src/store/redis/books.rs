//! The books of a queue as the scripts give them.

use super::reply::Reply;
use crate::store::{Books, StoreError};

/// The books of a queue: its name, then its counters in their order.
pub(in crate::store) fn read_books(mut it: Reply) -> Result<Books, StoreError> {
    let mut books = Books::new(it.parsed()?);
    for counter in Books::COUNTERS {
        (counter.set)(&mut books, it.parsed()?);
    }
    Ok(books)
}
