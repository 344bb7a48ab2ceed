//! Results: kept until they expire, and in all no more than a bound; the oldest make room.

use bytes::Bytes;

use super::{Moved, Tables};
use crate::{
    message::{MessageId, Name},
    store::{agreed::EXPIRED_AT_ONCE, operation::A_RESULT},
};

/// What a result counts for.
pub(in crate::store) const fn weight(bytes: u64) -> u64 {
    A_RESULT + bytes
}

/// Keeps a result, in the place of one that the message had before. One that is over the bound by itself is not kept.
pub(in crate::store) fn keep<T: Tables>(
    tables: &mut T, queue: &Name, id: MessageId, expires_ms: u64, result: &Bytes, max_results: u64,
) -> Moved<()> {
    tables.drop_result(queue, id)?;
    let weight = weight(result.len() as u64);
    if weight > max_results {
        return Ok(());
    }
    let over = (tables.result_bytes()? + weight).saturating_sub(max_results);
    if over > 0 {
        // Each makes room for some of it; a few more where the bound was larger before.
        let most = u32::try_from(weight.div_ceil(A_RESULT)).unwrap_or(u32::MAX).saturating_add(EXPIRED_AT_ONCE);
        tables.drop_oldest_results(over, most)?;
    }
    tables.put_result(queue, id, expires_ms, result)
}
