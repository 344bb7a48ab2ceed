//! The kept answer to a step, as text: `removed failed upto left`.

use super::Purged;
use crate::store::StoreError;

#[cfg(feature = "memory")]
pub(super) fn write(it: &Purged) -> String {
    let Purged { removed, failed, upto, left } = it;
    format!("{removed} {failed} {upto} {}", u8::from(*left))
}

pub(super) fn read(text: &str) -> Result<Purged, StoreError> {
    // The number of a step may have been that of a disposal, whose answer is one number.
    let numbers: Vec<u64> = text.split(' ').map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [removed, failed, upto, left] => Ok(Purged { removed, failed, upto, left: left == 1 }),
        _ => Err(StoreError::Damaged("the kept answer is not that of a purge".to_owned())),
    }
}
