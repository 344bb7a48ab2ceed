//! Parcels that lie elsewhere: cut without being read whole.

use std::io::{self, Read, Seek, SeekFrom};

use super::{PARCEL_HEADER, Parcel, begun, number, place_before};

/// How many ends are read at once.
const ENDS_AT_ONCE: usize = 1_024;

impl Parcel {
    /// The messages `start .. start + len` of a parcel of `count` messages that is `stored` in `size` bytes, as many as
    /// fit into `budget` body bytes; nothing if not even one does. Reads their ends, as far as they fit, and then just
    /// their bodies.
    ///
    /// # Errors
    /// Those of reading; [`io::ErrorKind::InvalidData`] if it is shorter than its ends say, or no parcel.
    pub fn cut_stored(
        stored: &mut (impl Read + Seek), size: usize, count: u32, start: u32, len: u32, budget: u64,
    ) -> io::Result<Option<Self>> {
        let short = || io::Error::new(io::ErrorKind::InvalidData, "a parcel is shorter than its table of ends");
        let wanted = len.min(count.saturating_sub(start)) as usize;
        let parcel_base = read_number(stored, place_before(0))?;
        let base = read_number(stored, place_before(start))?;
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
        let from = PARCEL_HEADER + count as usize * 4 + base.checked_sub(parcel_base).ok_or_else(short)? as usize;
        let data = (last - base) as usize;
        if from + data > size {
            return Err(short());
        }
        let mut bytes = begun(taken, base, &ends, data);
        let bodies = bytes.len();
        bytes.resize(bodies + data, 0);
        stored.seek(SeekFrom::Start(from as u64))?;
        stored.read_exact(bytes.get_mut(bodies..).ok_or_else(short)?)?;
        Self::parse(bytes.freeze()).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

fn read_number(stored: &mut (impl Read + Seek), at: usize) -> io::Result<u32> {
    let mut number = [0; 4];
    stored.seek(SeekFrom::Start(at as u64))?;
    stored.read_exact(&mut number)?;
    Ok(u32::from_le_bytes(number))
}
