//! Parcels of which some messages have gone: what those left count for, and the same without the bodies of the others.

use std::io::{self, Read, Seek};

use bytes::BufMut as _;

use super::{
    super::headers::{SECTION_LENGTH, section_end},
    HEADED, PARCEL_TABLE, Parcel, begun, place_before,
    stored::read_at,
};

/// Bytes that a message takes in the table of ends.
const END: u64 = 4;

impl Parcel {
    /// What the messages `start .. start + len` count for of its bytes: each its end and its record, the first also what
    /// stands before the records. So all of them together count for all of it, and taking bodies of others out changes
    /// nothing of what one counts for.
    pub(crate) fn share(&self, start: u32, len: u32) -> u64 {
        let records = self.end_before(start.saturating_add(len)).saturating_sub(self.end_before(start));
        let head = if start == 0 { PARCEL_TABLE + self.shared as usize } else { 0 };
        END * u64::from(len) + (records + head) as u64
    }

    /// [`Parcel::share`] of a parcel of `count` messages that is `stored` elsewhere; reads what tells it.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::InvalidData`] if its ends go backwards.
    pub(crate) fn share_stored(stored: &mut (impl Read + Seek), count: u32, start: u32, len: u32) -> io::Result<u64> {
        let mut end_before = |index: u32| {
            let mut end = [0; 4];
            read_at(stored, place_before(index), &mut end)?;
            io::Result::Ok(u32::from_le_bytes(end))
        };
        let (before, last) = (end_before(start)?, end_before(start.saturating_add(len))?);
        let backwards = || io::Error::new(io::ErrorKind::InvalidData, "the ends of a parcel go backwards");
        let mut bytes = END * u64::from(len) + u64::from(last.checked_sub(before).ok_or_else(backwards)?);
        if start == 0 {
            bytes += PARCEL_TABLE as u64;
            let mut format = [0; 1];
            read_at(stored, 0, &mut format)?;
            if format == [HEADED] {
                let mut section = [0; SECTION_LENGTH];
                read_at(stored, PARCEL_TABLE + count as usize * 4, &mut section)?;
                bytes += section_end(&section).unwrap_or(SECTION_LENGTH) as u64;
            }
        }
        Ok(bytes)
    }

    /// The same parcel with nothing in the places of those that have gone: every other message is found where it was.
    #[must_use]
    pub(crate) fn thinned(&self, has_gone: impl Fn(u32) -> bool) -> Self {
        let (mut ends, mut records) = (Vec::with_capacity(self.count as usize * 4), Vec::new());
        for index in 0..self.count {
            if !has_gone(index) {
                let record = self.record(index).and_then(|record| self.bytes.get(record));
                records.extend_from_slice(record.unwrap_or_default());
            }
            // No more than they were, which an end could say.
            ends.put_u32_le(u32::try_from(records.len()).unwrap_or(u32::MAX));
        }
        let shared = self.bytes.get(self.table_end()..self.records()).unwrap_or_default();
        let format = self.bytes.first().copied().unwrap_or_default();
        let mut bytes = begun(format, self.count, 0, &ends, shared.len() + records.len());
        bytes.put_slice(shared);
        bytes.put_slice(&records);
        Self { bytes: bytes.freeze(), count: self.count, base: 0, shared: self.shared }
    }
}
