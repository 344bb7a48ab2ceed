//! How large a body may be: the one place that knows and compares.

use super::InvalidMessage;

/// The largest body where no other limit is set. Kept where parcels are made, so that there is no way around it; what
/// is stored already is read whatever its size.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// The largest limit that people may set: a parcel holds at least one such body, with room for its headers.
pub(crate) const MAX_BODY_LIMIT: usize = 32 << 20;

/// Whether a body of `len` bytes is within `limit`.
pub(crate) const fn within(len: usize, limit: usize) -> Result<(), InvalidMessage> {
    if len > limit { Err(InvalidMessage::BodyTooLarge { len, limit }) } else { Ok(()) }
}
