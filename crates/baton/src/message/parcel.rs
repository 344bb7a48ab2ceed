//! Parcels: runs of message bodies that are written once and travel as one record.
//!
//! ```text
//! format u8 | count u32 | base u32 | end u32 × count | bodies
//! ```
//! Numbers are little-endian. Body `i` lies between the ends `i-1` and `i`, counted from `base`; a fresh parcel has
//! base 0. A cut of a parcel is a parcel again: the same slice of ends, the same slice of bodies, and the end before
//! the cut as its base. So a store cuts without touching a number, and a reader needs one format.

mod stored;

use bytes::{BufMut, Bytes, BytesMut};

use super::InvalidMessage;

/// The format byte written by this release.
pub const FORMAT: u8 = 1;
/// The most messages one parcel holds.
pub const MAX_PARCEL_MESSAGES: usize = 65_536;
/// The largest body. Kept where parcels are made, so that there is no way around it; what is stored already is read
/// whatever its size.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// The most body bytes one parcel holds.
const MAX_PARCEL_BYTES: usize = 64 << 20;
/// The bytes before the table of ends.
pub const PARCEL_HEADER: usize = 9;

/// A checked parcel over shared bytes; cloning and cutting copy no bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    bytes: Bytes,
    count: u32,
    base: u32,
}

impl Parcel {
    /// Checks `bytes` against the format and takes them as a parcel.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] says what is wrong; no input panics.
    pub fn parse(bytes: Bytes) -> Result<Self, InvalidMessage> {
        let refuse = |why| Err(InvalidMessage::Parcel(why));
        if bytes.first() != Some(&FORMAT) {
            return refuse("unknown format byte");
        }
        let (Some(count), Some(base)) = (number(&bytes, 1), number(&bytes, 5)) else {
            return refuse("shorter than its header");
        };
        if count == 0 || count as usize > MAX_PARCEL_MESSAGES {
            return refuse("count outside 1 to 65536");
        }
        let Some(ends) = bytes.get(PARCEL_HEADER..PARCEL_HEADER + count as usize * 4) else {
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
        if (last - base) as usize != bytes.len() - PARCEL_HEADER - ends.len() {
            return refuse("length differs from its table of ends");
        }
        Ok(Self { bytes, count, base })
    }

    /// A parcel of one message.
    ///
    /// # Errors
    /// [`InvalidMessage::BodyTooLarge`] over [`MAX_BODY_BYTES`].
    pub fn single(body: &[u8]) -> Result<Self, InvalidMessage> {
        let mut builder = ParcelBuilder::default();
        builder.add(body)?;
        builder.finish().ok_or(InvalidMessage::Parcel("empty"))
    }

    /// A parcel of one message that was taken before, when the limit may have been another.
    pub(crate) fn of_stored(body: &[u8]) -> Result<Self, InvalidMessage> {
        let mut builder = ParcelBuilder::default();
        builder.append(body)?;
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

    /// Bytes of the bodies alone.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.bytes.len() - self.data_start()
    }

    /// The body at `index`, sharing the parcel's memory.
    #[must_use]
    pub fn body(&self, index: u32) -> Option<Bytes> {
        if index >= self.count {
            return None;
        }
        let ends = self.bytes.get(place_before(index)..)?;
        let (from, to) = (number(ends, 0)? - self.base, number(ends, 4)? - self.base);
        Some(self.bytes.slice(self.data_start() + from as usize..self.data_start() + to as usize))
    }

    /// All bodies in order, without a copy.
    pub fn bodies(&self) -> impl Iterator<Item = Bytes> + '_ {
        (0..self.count).map_while(|index| self.body(index))
    }

    /// How many of the messages from `start` on fit into `budget` body bytes, at most `len`.
    #[must_use]
    pub fn fitting(&self, start: u32, len: u32, budget: usize) -> u32 {
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
        let ends = self.bytes.get(PARCEL_HEADER + start as usize * 4..PARCEL_HEADER + end as usize * 4)?;
        let data = self.bytes.get(self.data_start() + from..self.data_start() + to)?;
        let mut bytes = begun(len, base, ends, data.len());
        bytes.put_slice(data);
        Some(Self { bytes: bytes.freeze(), count: len, base })
    }

    const fn data_start(&self) -> usize {
        PARCEL_HEADER + self.count as usize * 4
    }

    /// Where body `index` begins within the bodies.
    fn end_before(&self, index: u32) -> usize {
        (number(&self.bytes, place_before(index)).unwrap_or(self.base) - self.base) as usize
    }
}

/// Where the end of the body before `index` is written; the first has the base for it, which lies before the ends.
const fn place_before(index: u32) -> usize {
    PARCEL_HEADER - 4 + index as usize * 4
}

/// A parcel up to its bodies, with room for these.
fn begun(count: u32, base: u32, ends: &[u8], data: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(PARCEL_HEADER + ends.len() + data);
    bytes.put_u8(FORMAT);
    bytes.put_u32_le(count);
    bytes.put_u32_le(base);
    bytes.put_slice(ends);
    bytes
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Collects bodies into one parcel.
#[derive(Debug)]
pub struct ParcelBuilder {
    ends: Vec<u8>,
    data: Vec<u8>,
    /// The longest body it takes.
    limit: usize,
}

impl Default for ParcelBuilder {
    fn default() -> Self {
        Self::with_limit(MAX_BODY_BYTES)
    }
}

impl ParcelBuilder {
    /// One that takes bodies of up to `limit` bytes instead of [`MAX_BODY_BYTES`].
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self { ends: Vec::new(), data: Vec::new(), limit }
    }

    /// Whether a body of `len` bytes still fits beside those collected.
    #[must_use]
    pub const fn has_room(&self, len: usize) -> bool {
        self.ends.len() / 4 < MAX_PARCEL_MESSAGES && self.data.len() + len <= MAX_PARCEL_BYTES
    }

    /// Adds a body.
    ///
    /// # Errors
    /// [`InvalidMessage::BodyTooLarge`] over its limit, [`InvalidMessage::Parcel`] if the parcel is full: ask
    /// [`ParcelBuilder::has_room`] first.
    pub fn add(&mut self, body: &[u8]) -> Result<(), InvalidMessage> {
        if body.len() > self.limit {
            return Err(InvalidMessage::BodyTooLarge { len: body.len(), limit: self.limit });
        }
        self.append(body)
    }

    fn append(&mut self, body: &[u8]) -> Result<(), InvalidMessage> {
        if !self.has_room(body.len()) {
            return Err(InvalidMessage::Parcel("full"));
        }
        self.data.extend_from_slice(body);
        let end = u32::try_from(self.data.len()).map_err(|_| InvalidMessage::Parcel("full"))?;
        self.ends.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    /// How many bodies were added.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len() / 4
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of the bodies added.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.data.len()
    }

    /// The parcel, or nothing if no body was added; the builder is empty afterwards.
    pub fn finish(&mut self) -> Option<Parcel> {
        let count = u32::try_from(self.len()).ok().filter(|count| *count > 0)?;
        let mut bytes = begun(count, 0, &self.ends, self.data.len());
        bytes.put_slice(&self.data);
        self.ends.clear();
        self.data.clear();
        Some(Parcel { bytes: bytes.freeze(), count, base: 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn parcel_of(bodies: &[Vec<u8>]) -> Parcel {
        let mut builder = ParcelBuilder::default();
        for body in bodies {
            builder.add(body).unwrap();
        }
        builder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn bodies_come_back_and_cuts_are_parcels(
            bodies in vec(vec(any::<u8>(), 0..40), 1..60), start in 0_usize..60, len in 1_usize..60, budget in 0_usize..400,
        ) {
            let parcel = parcel_of(&bodies);
            prop_assert_eq!(&Parcel::parse(parcel.bytes().clone()).unwrap(), &parcel);
            prop_assert_eq!(parcel.bodies().map(|b| b.to_vec()).collect::<Vec<_>>(), bodies.clone());
            let cut = parcel.cut(start as u32, len as u32);
            prop_assert_eq!(cut.is_some(), start + len <= bodies.len());
            if let Some(cut) = cut {
                prop_assert_eq!(&Parcel::parse(cut.bytes().clone()).unwrap(), &cut);
                prop_assert_eq!(cut.bodies().map(|b| b.to_vec()).collect::<Vec<_>>(), &bodies[start..start + len]);
                let again = cut.cut(len as u32 - 1, 1).unwrap();
                prop_assert_eq!(again.body(0).unwrap(), &bodies[start + len - 1][..]);
                let fit = parcel.fitting(start as u32, len as u32, budget) as usize;
                let mut stored = std::io::Cursor::new(parcel.bytes());
                let (size, count) = (parcel.bytes().len(), parcel.len());
                let read = Parcel::cut_stored(&mut stored, size, count, start as u32, len as u32, budget as u64).unwrap();
                prop_assert_eq!(read, parcel.cut(start as u32, fit as u32), "read in part as cut whole");
                prop_assert!(bodies[start..start + fit].concat().len() <= budget);
                prop_assert!(fit == len || bodies[start..=start + fit].concat().len() > budget);
            }
        }

        #[test]
        fn no_bytes_panic_the_parser(mut bytes in vec(any::<u8>(), 0..200), format in any::<bool>()) {
            if format && !bytes.is_empty() { bytes[0] = FORMAT; }
            if let Ok(parcel) = Parcel::parse(Bytes::from(bytes)) {
                prop_assert_eq!(parcel.bodies().count(), parcel.len() as usize);
            }
        }

        #[test]
        fn a_damaged_parcel_never_panics(bodies in vec(vec(any::<u8>(), 0..9), 1..9), at in 0_usize..60, value in any::<u8>()) {
            let mut bytes = parcel_of(&bodies).bytes().to_vec();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(parcel) = Parcel::parse(Bytes::from(bytes)) {
                prop_assert_eq!(parcel.bodies().count(), parcel.len() as usize);
            }
        }
    }

    #[test]
    fn refusals_name_the_cause() {
        for (bytes, why) in [
            (&b""[..], "unknown format byte"),
            (&[9, 1, 0, 0, 0, 0, 0, 0, 0], "unknown format byte"),
            (&[1, 1, 0], "shorter than its header"),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0], "count outside 1 to 65536"),
            (&[1, 1, 0, 0, 0, 0, 0, 0, 0, 1], "shorter than its table of ends"),
            (&[1, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0], "ends go backwards"),
            (&[1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], "length differs from its table of ends"),
        ] {
            assert_eq!(Parcel::parse(Bytes::from_static(bytes)), Err(InvalidMessage::Parcel(why)));
        }
    }

    #[test]
    fn no_body_over_the_limit_gets_into_a_parcel() {
        let (largest, over) = (vec![b'1'; MAX_BODY_BYTES], vec![b'1'; MAX_BODY_BYTES + 1]);
        let refused = InvalidMessage::BodyTooLarge { len: over.len(), limit: MAX_BODY_BYTES };
        assert_eq!(Parcel::single(&largest).unwrap().body_bytes(), MAX_BODY_BYTES);
        assert_eq!(Parcel::single(&over).unwrap_err(), refused);
        let mut builder = ParcelBuilder::default();
        assert_eq!(builder.add(&over).unwrap_err(), refused);
        assert!(builder.is_empty());
        assert_eq!(Parcel::of_stored(&over).unwrap().body_bytes(), over.len(), "what is stored stays readable");
    }

    #[test]
    fn a_full_builder_says_so() {
        let mut builder = ParcelBuilder::default();
        for _ in 0..MAX_PARCEL_MESSAGES {
            builder.add(b"1").unwrap();
        }
        assert!(!builder.has_room(0));
        assert!(builder.add(b"1").is_err());
        assert_eq!(builder.finish().unwrap().len() as usize, MAX_PARCEL_MESSAGES);
        assert!(builder.finish().is_none());
    }
}
