//! Parcels that lie elsewhere: cut without being read whole.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::BufMut as _;

use super::{
    super::headers::{SECTION_LENGTH, section_end},
    HEADED, PARCEL_TABLE, Parcel, begun, number, place_before,
};

/// How many ends are read at once.
const ENDS_AT_ONCE: usize = 1_024;

impl Parcel {
    /// [`Parcel::share`] of a parcel of `count` messages that is `stored` elsewhere; reads what tells it.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::InvalidData`] if its ends go backwards.
    #[cfg(any(test, feature = "sqlite"))]
    pub(crate) fn share_stored(stored: &mut (impl Read + Seek), count: u32, start: u32, len: u32) -> io::Result<u64> {
        let mut end_before = |index: u32| {
            let mut end = [0; 4];
            read_at(stored, place_before(index), &mut end)?;
            io::Result::Ok(u32::from_le_bytes(end))
        };
        let (before, last) = (end_before(start)?, end_before(start.saturating_add(len))?);
        let backwards = || io::Error::new(io::ErrorKind::InvalidData, "the ends of a parcel go backwards");
        let mut bytes =
            super::partly::END * u64::from(len) + u64::from(last.checked_sub(before).ok_or_else(backwards)?);
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

    /// The messages `start .. start + len` of a parcel of `count` messages that is `stored` in `size` bytes, as many as
    /// fit into `budget` bytes of [`Parcel::weight`]; nothing if not even one does. Reads their ends, as far as they fit,
    /// and then just their records.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::InvalidData`] if it is shorter than its ends say, or no parcel.
    pub fn cut_stored(
        stored: &mut (impl Read + Seek), size: usize, count: u32, start: u32, len: u32, budget: u64,
    ) -> io::Result<Option<Self>> {
        let short = || io::Error::new(io::ErrorKind::InvalidData, "a parcel is shorter than its table of ends");
        let mut head = [0; PARCEL_TABLE];
        read_at(stored, 0, &mut head)?;
        let (format, parcel_base) = (head[0], number(&head, place_before(0)).ok_or_else(short)?);
        let table_end = PARCEL_TABLE + count as usize * 4;
        let mut shared = Vec::new();
        if format == HEADED {
            shared.resize(SECTION_LENGTH, 0);
            read_at(stored, table_end, &mut shared)?;
            shared.resize(section_end(&shared).unwrap_or(SECTION_LENGTH), 0);
            read_at(stored, table_end, &mut shared)?;
        }
        let Some(budget) = budget.checked_sub(shared.len() as u64) else { return Ok(None) };
        let wanted = len.min(count.saturating_sub(start)) as usize;
        let mut base = [0; 4];
        read_at(stored, place_before(start), &mut base)?;
        let base = u32::from_le_bytes(base);
        let (mut ends, mut last) = (Vec::new(), base);
        'steps: while ends.len() / 4 < wanted {
            let mut step = vec![0; (wanted - ends.len() / 4).min(ENDS_AT_ONCE) * 4];
            stored.read_exact(&mut step)?;
            for end in step.chunks_exact(4) {
                let value = number(end, 0).ok_or_else(short)?;
                if u64::from(value.checked_sub(base).ok_or_else(short)?) > budget {
                    break 'steps;
                }
                last = value;
                ends.extend_from_slice(end);
            }
        }
        let Some(taken) = u32::try_from(ends.len() / 4).ok().filter(|taken| *taken > 0) else { return Ok(None) };
        let from = table_end + shared.len() + base.checked_sub(parcel_base).ok_or_else(short)? as usize;
        let data = (last - base) as usize;
        if from + data > size {
            return Err(short());
        }
        let mut bytes = begun(format, taken, base, &ends, shared.len() + data);
        bytes.put_slice(&shared);
        let records = bytes.len();
        bytes.resize(records + data, 0);
        read_at(stored, from, bytes.get_mut(records..).ok_or_else(short)?)?;
        Self::parse(bytes.freeze()).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

fn read_at(stored: &mut (impl Read + Seek), at: usize, into: &mut [u8]) -> io::Result<()> {
    stored.seek(SeekFrom::Start(at as u64))?;
    stored.read_exact(into)
}
