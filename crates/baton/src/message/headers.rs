//! Headers: what travels with a message beside its body.
//!
//! ```text
//! section = length u16 | fields        field = tag u8 | length u16 | value
//! ```
//! Numbers are little-endian. A message has two sections: that of its parcel, shared by all messages of it, and its own.
//! Of two fields with one tag its own counts. Whoever meets a tag it does not know passes the field on as it is, so what
//! a later release writes survives an older one of the same store format. A section is bounded by its length: 64 KiB.

use bytes::{BufMut, Bytes, BytesMut};

use super::InvalidMessage;

/// The text of the last attempt that failed and was to be tried again.
pub const LAST_ERROR: u8 = 1;
/// The longest text kept under [`LAST_ERROR`].
pub const MAX_LAST_ERROR_BYTES: usize = 1 << 10;
/// The bytes of a section before its fields.
pub(super) const SECTION_LENGTH: usize = 2;
/// The bytes of a field before its value.
const FIELD_HEAD: usize = 3;

/// Tagged values, one after the other; checked, over shared bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Bytes);

impl Fields {
    /// Checks `bytes` and takes them as fields.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] if they do not end with a field, or are too long for a section.
    pub fn parse(bytes: Bytes) -> Result<Self, InvalidMessage> {
        if bytes.len() > usize::from(u16::MAX) {
            return Err(InvalidMessage::Parcel("headers over 64 KiB"));
        }
        let fields = Self(bytes);
        let taken: usize = fields.iter().map(|(_, value)| FIELD_HEAD + value.len()).sum();
        if taken == fields.0.len() { Ok(fields) } else { Err(InvalidMessage::Parcel("headers end within a field")) }
    }

    /// The fields in order, as tag and value.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Bytes)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (tag, rest) = self.0.get(at..)?.split_first()?;
            let value = at + FIELD_HEAD;
            let end = value + usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?));
            let field = (end <= self.0.len()).then(|| (*tag, self.0.slice(value..end)))?;
            at = end;
            Some(field)
        })
    }

    /// The value of the first field with this tag.
    #[must_use]
    pub fn get(&self, tag: u8) -> Option<Bytes> {
        self.iter().find_map(|(found, value)| (found == tag).then_some(value))
    }

    /// The same with this value for the tag, in the last place, or without the tag if there is no value.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] if a section cannot hold them.
    pub fn with(&self, tag: u8, value: Option<&[u8]>) -> Result<Self, InvalidMessage> {
        let mut bytes = BytesMut::with_capacity(self.0.len() + value.map_or(0, |value| FIELD_HEAD + value.len()));
        let others = self.iter().filter(|(found, _)| *found != tag);
        for (tag, value) in others.chain(value.map(|value| (tag, Bytes::copy_from_slice(value)))) {
            let len = u16::try_from(value.len()).map_err(|_| InvalidMessage::Parcel("headers over 64 KiB"))?;
            bytes.put_u8(tag);
            bytes.put_u16_le(len);
            bytes.put_slice(&value);
        }
        Self::parse(bytes.freeze())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the section they make.
    pub(super) const fn section_len(&self) -> usize {
        SECTION_LENGTH + self.0.len()
    }

    /// Writes them as a section.
    pub(super) fn put(&self, to: &mut impl BufMut) {
        // Checked when they were made.
        to.put_u16_le(u16::try_from(self.0.len()).unwrap_or(u16::MAX));
        to.put_slice(&self.0);
    }

    /// Reads the section that `bytes` begin with; the fields, and how long the section is.
    pub(super) fn read(bytes: &Bytes) -> Result<(Self, usize), InvalidMessage> {
        let end = section_end(bytes).filter(|end| *end <= bytes.len());
        let end = end.ok_or(InvalidMessage::Parcel("shorter than its headers"))?;
        Ok((Self::parse(bytes.slice(SECTION_LENGTH..end))?, end))
    }
}

/// Where the section ends that `bytes` begin with.
pub(super) fn section_end(bytes: &[u8]) -> Option<usize> {
    let len = u16::from_le_bytes(bytes.get(..SECTION_LENGTH)?.try_into().ok()?);
    Some(SECTION_LENGTH + usize::from(len))
}

/// The headers of one message: those of its parcel, and its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    /// Those of its parcel.
    pub shared: Fields,
    /// Its own; of two with one tag these count.
    pub own: Fields,
}

impl Headers {
    /// Reads [`Headers::bytes`].
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] if they are not two sections.
    pub fn parse(bytes: &Bytes) -> Result<Self, InvalidMessage> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let (shared, at) = Fields::read(bytes)?;
        let (own, len) = Fields::read(&bytes.slice(at..))?;
        if at + len != bytes.len() {
            return Err(InvalidMessage::Parcel("more than headers"));
        }
        Ok(Self { shared, own })
    }

    /// Both sections, as they stand before the body in a parcel of one message; nothing if there is no header.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        if self.is_empty() {
            return Bytes::new();
        }
        let mut bytes = BytesMut::with_capacity(self.byte_len());
        self.shared.put(&mut bytes);
        self.own.put(&mut bytes);
        bytes.freeze()
    }

    /// How many bytes [`Headers::bytes`] gives.
    #[must_use]
    pub(crate) const fn byte_len(&self) -> usize {
        if self.is_empty() { 0 } else { self.shared.section_len() + self.own.section_len() }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }

    /// The value of a tag.
    #[must_use]
    pub fn get(&self, tag: u8) -> Option<Bytes> {
        self.own.get(tag).or_else(|| self.shared.get(tag))
    }

    /// Why the last attempt failed, if that was told and the message was to be tried again.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.get(LAST_ERROR).map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The same after another attempt that failed; an empty text leaves none.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] if a section cannot hold them.
    pub(crate) fn failed_again(&self, error: &str) -> Result<Self, InvalidMessage> {
        let own = self.own.with(LAST_ERROR, Some(error.as_bytes()).filter(|error| !error.is_empty()))?;
        Ok(Self { shared: self.shared.clone(), own })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn fields_come_back_and_unknown_ones_travel_on(
            fields in vec((any::<u8>(), vec(any::<u8>(), 0..30)), 0..8), error in "[a-zä]{1,20}",
        ) {
            let mut own = Fields::default();
            for (tag, value) in &fields {
                own = own.with(*tag, Some(value)).unwrap();
            }
            let headers = Headers { shared: own.clone(), own };
            prop_assert_eq!(&Headers::parse(&headers.bytes()).unwrap(), &headers);
            let failed = headers.failed_again(&error).unwrap();
            prop_assert_eq!(failed.last_error(), Some(error));
            for (tag, _) in fields.iter().filter(|(tag, _)| *tag != LAST_ERROR) {
                prop_assert_eq!(failed.get(*tag), headers.get(*tag));
            }
            prop_assert_eq!(failed.failed_again("").unwrap().own.get(LAST_ERROR), None);
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..60)) {
            let bytes = Bytes::from(bytes);
            if let Ok(headers) = Headers::parse(&bytes) {
                prop_assert!(headers.is_empty() || headers.bytes() == bytes);
            }
        }
    }

    #[test]
    fn a_section_has_a_bound() {
        assert!(Fields::default().with(9, Some(&[0; 65_532])).is_ok());
        assert!(Fields::default().with(9, Some(&[0; 65_533])).is_err());
        assert!(Fields::default().with(9, Some(&[0; 70_000])).is_err());
    }
}
