//! Parcels of which some messages have gone: what those left count for, and the same without the bodies of the others.

use bytes::BufMut as _;

use super::{PARCEL_TABLE, Parcel, begun};

/// Bytes that a message takes in the table of ends.
pub(super) const END: u64 = 4;

impl Parcel {
    /// What the messages `start .. start + len` count for of its bytes: each its end and its record, the first also what
    /// stands before the records. So all of them together count for all of it, and taking bodies of others out changes
    /// nothing of what one counts for.
    pub(crate) fn share(&self, start: u32, len: u32) -> u64 {
        let records = self.end_before(start.saturating_add(len)).saturating_sub(self.end_before(start));
        let head = if start == 0 { PARCEL_TABLE + self.shared as usize } else { 0 };
        END * u64::from(len) + (records + head) as u64
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
