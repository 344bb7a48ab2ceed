//! Parcels: runs of message bodies that are written once and travel as one record.
//!
//! ```text
//! plain    1 u8 | count u32 | base u32 | end u32 × count | body × count
//! headed   2 u8 | count u32 | base u32 | end u32 × count | section | (section | body) × count
//! ```
//! Numbers are little-endian. Record `i` lies between the ends `i-1` and `i`, counted from `base`; a fresh parcel has
//! base 0. A record is a body; in a headed parcel it is the message's headers and its body, and what all messages share
//! stands before the records (see [`Headers`]).
//!
//! A cut of a parcel is a parcel again: the same slice of ends, the same shared section, the same slice of records, and
//! the end before the cut as its base. So a store cuts without touching a number, headers or not, and a reader needs one
//! format. Bulk without headers is written plain, byte for byte as ever.
//!
//! Where a message has gone before others, its record may be empty, in a headed parcel too: nobody asks for it.

mod builder;
mod partly;
mod stored;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

pub use self::builder::ParcelBuilder;
use super::{
    InvalidMessage,
    body::Body,
    headers::{Fields, Headers, section_end},
};

/// The format byte of parcels without headers.
pub const PLAIN: u8 = 1;
/// The format byte of parcels with headers.
pub(crate) const HEADED: u8 = 2;
/// The most messages one parcel holds.
pub(super) const MAX_PARCEL_MESSAGES: usize = 65_536;
/// The most bytes of records one parcel is made with.
const MAX_PARCEL_BYTES: usize = 64 << 20;
/// The bytes before the table of ends; the last four of them are the base.
pub(crate) const PARCEL_TABLE: usize = 9;

/// A checked parcel over shared bytes; cloning and cutting copy no bodies. Two are equal if they hold the same messages,
/// whatever they were cut from.
#[derive(Debug, Clone)]
pub struct Parcel {
    bytes: Bytes,
    count: u32,
    base: u32,
    /// The bytes of the shared section: 0 in a plain parcel.
    shared: u32,
}

impl PartialEq for Parcel {
    fn eq(&self, other: &Self) -> bool {
        let head = |parcel: &Self| (parcel.bytes.first().copied(), parcel.count, parcel.shared);
        let records = |parcel: &Self| parcel.bytes.slice(PARCEL_TABLE + 4 * parcel.count as usize..);
        let lengths = |index| {
            let [one, another] = [self, other].map(|parcel| parcel.record(index).map(|record| record.len()));
            one == another
        };
        head(self) == head(other) && (0..self.count).all(lengths) && records(self) == records(other)
    }
}

impl Eq for Parcel {}

impl Parcel {
    /// Checks `bytes` against the format and takes them as a parcel.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] says what is wrong; no input panics.
    pub fn parse(bytes: Bytes) -> Result<Self, InvalidMessage> {
        let refuse = |why| Err(InvalidMessage::Parcel(why));
        let headed = match bytes.first() {
            Some(&PLAIN) => false,
            Some(&HEADED) => true,
            _ => return refuse("unknown format byte"),
        };
        let (Some(count), Some(base)) = (number(&bytes, 1), number(&bytes, 5)) else {
            return refuse("shorter than its header");
        };
        if count == 0 || count as usize > MAX_PARCEL_MESSAGES {
            return refuse("count outside 1 to 65536");
        }
        let table = PARCEL_TABLE + count as usize * 4;
        let Some(ends) = bytes.get(PARCEL_TABLE..table) else {
            return refuse("shorter than its table of ends");
        };
        let mut last = base;
        for end in ends.chunks_exact(4) {
            let end = number(end, 0).unwrap_or(0);
            if end < last {
                return refuse("ends go backwards");
            }
            last = end;
        }
        let shared = if headed { Fields::read(&bytes.slice(table..))?.1 } else { 0 };
        if (last - base) as usize != bytes.len() - table - shared {
            return refuse("length differs from its table of ends");
        }
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let parcel = Self { bytes, count, base, shared };
        if headed {
            for record in (0..count).filter_map(|index| parcel.record(index)).filter(|record| !record.is_empty()) {
                Fields::read(&parcel.bytes.slice(record))?;
            }
        }
        Ok(parcel)
    }

    /// A parcel of one message.
    #[must_use]
    pub fn single(body: Body<'_>) -> Self {
        // The largest limit of a body is far below what an end can say.
        let end = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = begun(PLAIN, 1, 0, &end, body.len());
        bytes.put_slice(body.bytes());
        Self { bytes: bytes.freeze(), count: 1, base: 0, shared: 0 }
    }

    /// A parcel of one message that was taken before, when the limit may have been another.
    pub(crate) fn of_stored(headers: &Headers, body: &[u8]) -> Result<Self, InvalidMessage> {
        let mut builder = ParcelBuilder::default().shared(headers.shared.clone());
        builder.add_with(&headers.own, Body::taken_before(body))?;
        builder.finish().ok_or(InvalidMessage::Parcel("empty"))
    }

    /// How many messages it holds; never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a parcel is never empty")]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// The parcel as it is stored.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What it counts for against a bound of body bytes: its bodies and headers.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.bytes.len() - self.table_end()
    }

    /// The body at `index`, sharing the parcel's memory.
    #[must_use]
    pub fn body(&self, index: u32) -> Option<Bytes> {
        let record = self.record(index)?;
        let body = if self.shared == 0 { record } else { self.behind_headers(record)? };
        Some(self.bytes.slice(body))
    }

    /// All bodies in order, without a copy.
    pub fn bodies(&self) -> impl Iterator<Item = Bytes> + '_ {
        (0..self.count).map_while(|index| self.body(index))
    }

    /// The headers of the message at `index`, sharing the parcel's memory; none in a plain parcel.
    #[must_use]
    pub fn headers(&self, index: u32) -> Headers {
        if self.shared == 0 {
            return Headers::default();
        }
        // Both were read when the parcel was checked.
        let read = |bytes: Bytes| Fields::read(&bytes).map(|(fields, _)| fields).unwrap_or_default();
        let shared = read(self.bytes.slice(self.table_end()..self.records()));
        Headers { shared, own: self.record(index).map(|record| read(self.bytes.slice(record))).unwrap_or_default() }
    }

    /// How many of the messages from `start` on fit into `budget` bytes of [`Parcel::weight`], at most `len`.
    #[must_use]
    pub fn fitting(&self, start: u32, len: u32, budget: usize) -> u32 {
        let Some(budget) = budget.checked_sub(self.shared as usize) else { return 0 };
        let from = self.end_before(start);
        (1..=len.min(self.count.saturating_sub(start)))
            .take_while(|taken| self.end_before(start + taken) - from <= budget)
            .last()
            .unwrap_or(0)
    }

    /// The messages `start .. start + len` as a parcel of their own; out of bounds gives nothing.
    #[must_use]
    pub fn cut(&self, start: u32, len: u32) -> Option<Self> {
        let end = start.checked_add(len).filter(|end| len > 0 && *end <= self.count)?;
        if len == self.count {
            return Some(self.clone());
        }
        let (from, to) = (self.end_before(start), self.end_before(end));
        let base = self.base + u32::try_from(from).ok()?;
        let ends = self.bytes.get(PARCEL_TABLE + start as usize * 4..PARCEL_TABLE + end as usize * 4)?;
        let shared = self.bytes.get(self.table_end()..self.records())?;
        let records = self.bytes.get(self.records() + from..self.records() + to)?;
        let mut bytes = begun(*self.bytes.first()?, len, base, ends, shared.len() + records.len());
        bytes.put_slice(shared);
        bytes.put_slice(records);
        Some(Self { bytes: bytes.freeze(), count: len, base, shared: self.shared })
    }

    /// Where its headers and its body lie, or the body alone in a plain parcel.
    fn record(&self, index: u32) -> Option<Range<usize>> {
        if index >= self.count {
            return None;
        }
        let ends = self.bytes.get(place_before(index)..)?;
        let (from, to) = (number(ends, 0)? - self.base, number(ends, 4)? - self.base);
        Some(self.records() + from as usize..self.records() + to as usize)
    }

    /// Where the body of a record with headers lies.
    #[cold]
    fn behind_headers(&self, record: Range<usize>) -> Option<Range<usize>> {
        if record.is_empty() {
            return Some(record);
        }
        let body = record.start + section_end(self.bytes.get(record.clone())?)?;
        (body <= record.end).then_some(body..record.end)
    }

    const fn table_end(&self) -> usize {
        PARCEL_TABLE + self.count as usize * 4
    }

    /// Where the records begin.
    const fn records(&self) -> usize {
        self.table_end() + self.shared as usize
    }

    /// Where record `index` begins among them.
    fn end_before(&self, index: u32) -> usize {
        (number(&self.bytes, place_before(index)).unwrap_or(self.base) - self.base) as usize
    }
}

/// Where the end of the record before `index` is written; the first has the base for it, which lies before the ends.
const fn place_before(index: u32) -> usize {
    PARCEL_TABLE - 4 + index as usize * 4
}

/// A parcel up to the end of its table, with room for what follows.
fn begun(format: u8, count: u32, base: u32, ends: &[u8], rest: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(PARCEL_TABLE + ends.len() + rest);
    bytes.put_u8(format);
    bytes.put_u32_le(count);
    bytes.put_u32_le(base);
    bytes.put_slice(ends);
    bytes
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
