//! Making parcels.

use bytes::BufMut as _;

use super::{
    super::{InvalidMessage, body::Body, headers::Fields},
    HEADED, MAX_PARCEL_BYTES, MAX_PARCEL_MESSAGES, PLAIN, Parcel, begun, number,
};

/// Collects bodies into one parcel: a plain one unless a header was given.
#[derive(Debug, Default)]
pub struct ParcelBuilder {
    ends: Vec<u8>,
    data: Vec<u8>,
    shared: Fields,
    /// The headers of each message, once there was one that has some.
    own: Vec<Fields>,
    /// Bytes of these.
    own_bytes: usize,
}

impl ParcelBuilder {
    /// The same with headers that all messages of its parcels share.
    #[must_use]
    pub fn shared(self, shared: Fields) -> Self {
        Self { shared, ..self }
    }

    /// Whether a body of `len` bytes still fits beside those collected.
    #[must_use]
    pub const fn has_room(&self, len: usize) -> bool {
        self.ends.len() / 4 < MAX_PARCEL_MESSAGES && self.data.len() + self.own_bytes + len <= MAX_PARCEL_BYTES
    }

    /// Adds a body.
    ///
    /// # Errors
    /// [`InvalidMessage::Parcel`] if the parcel is full: ask [`ParcelBuilder::has_room`] first.
    pub fn add(&mut self, body: Body<'_>) -> Result<(), InvalidMessage> {
        if !self.has_room(body.len()) {
            return Err(InvalidMessage::Parcel("full"));
        }
        self.data.extend_from_slice(body.bytes());
        let end = u32::try_from(self.data.len()).map_err(|_| InvalidMessage::Parcel("full"))?;
        self.ends.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    /// Adds a body with headers of its own.
    ///
    /// # Errors
    /// As [`ParcelBuilder::add`].
    pub fn add_with(&mut self, headers: &Fields, body: Body<'_>) -> Result<(), InvalidMessage> {
        if headers.is_empty() {
            return self.add(body);
        }
        let before = self.len();
        if !self.has_room(headers.section_len() + body.len()) {
            return Err(InvalidMessage::Parcel("full"));
        }
        self.add(body)?;
        self.own.resize(before, Fields::default());
        self.own.push(headers.clone());
        self.own_bytes += headers.section_len();
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
        let parcel = if self.shared.is_empty() && self.own.is_empty() { self.plain(count) } else { self.headed(count) };
        self.ends.clear();
        self.data.clear();
        self.own.clear();
        self.own_bytes = 0;
        Some(parcel)
    }

    fn plain(&self, count: u32) -> Parcel {
        let mut bytes = begun(PLAIN, count, 0, &self.ends, self.data.len());
        bytes.put_slice(&self.data);
        Parcel { bytes: bytes.freeze(), count, base: 0, shared: 0 }
    }

    fn headed(&self, count: u32) -> Parcel {
        let (none, mut ends) = (Fields::default(), Vec::with_capacity(self.ends.len()));
        let (mut records, mut from) = (Vec::with_capacity(self.data.len()), 0);
        for (index, end) in self.ends.chunks_exact(4).enumerate() {
            let to = number(end, 0).unwrap_or(0) as usize;
            self.own.get(index).unwrap_or(&none).put(&mut records);
            records.extend_from_slice(self.data.get(from..to).unwrap_or_default());
            from = to;
            // The records are bounded, far below what an end can say.
            ends.extend_from_slice(&u32::try_from(records.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        let shared = self.shared.section_len();
        let mut bytes = begun(HEADED, count, 0, &ends, shared + records.len());
        self.shared.put(&mut bytes);
        bytes.put_slice(&records);
        Parcel { bytes: bytes.freeze(), count, base: 0, shared: u32::try_from(shared).unwrap_or(u32::MAX) }
    }
}
