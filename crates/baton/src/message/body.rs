//! How large a body may be: the one place that knows and compares.

use super::InvalidMessage;

/// The largest body where no other limit is set. What is stored already is read whatever its size.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// The largest limit that people may set: a parcel holds at least one such body, with room for its headers.
pub(crate) const MAX_BODY_LIMIT: usize = 32 << 20;

/// A body that was found to be within its limit. It is made where bytes come in; parcels are made of nothing else, so
/// there is no way around the limit and nobody has to look again. It borrows the bytes and is nothing beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    /// A body of up to [`MAX_BODY_BYTES`].
    ///
    /// # Errors
    /// [`InvalidMessage::BodyTooLarge`] if it has more.
    pub const fn new(bytes: &'a [u8]) -> Result<Self, InvalidMessage> {
        Self::within(bytes, MAX_BODY_BYTES)
    }

    /// A body where another limit is set.
    pub(crate) const fn within(bytes: &'a [u8], limit: usize) -> Result<Self, InvalidMessage> {
        let len = bytes.len();
        if len > limit { Err(InvalidMessage::BodyTooLarge { len, limit }) } else { Ok(Self(bytes)) }
    }

    /// A body that was taken before, when the limit may have been another.
    pub(crate) const fn taken_before(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// How many bytes it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty body is no JSON, which is not looked at here")]
    pub const fn len(self) -> usize {
        self.0.len()
    }
}
