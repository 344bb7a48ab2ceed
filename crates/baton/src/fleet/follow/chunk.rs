//! Events as they were read, shared by all who follow their call.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::{
    message::CallEvent,
    store::{EventPage, StoreError},
};

/// In how many forms a chunk is kept encoded.
const FORMS: usize = 4;

/// Events that follow each other, shared by all who follow.
#[derive(Debug, Clone)]
pub struct Chunk {
    pub(super) stretch: Arc<Stretch>,
    /// How many of them are not this follower's.
    pub(super) skip: usize,
}

#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) from: u64,
    events: Vec<CallEvent>,
    pub(super) bytes: usize,
    encoded: [OnceLock<Bytes>; FORMS],
}

impl Stretch {
    pub(super) fn of(page: &EventPage) -> Result<Self, StoreError> {
        let events = page.events.iter().map(CallEvent::parse).collect::<Result<Vec<_>, _>>()?;
        let bytes = page.events.iter().map(Bytes::len).sum();
        Ok(Self { from: page.from, events, bytes, encoded: Default::default() })
    }

    pub(super) fn past(&self) -> u64 {
        self.from + self.events.len() as u64
    }
}

impl Chunk {
    /// The number of the first event.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.stretch.from + self.skip as u64
    }

    /// The events, in the order of their numbers.
    #[must_use]
    pub fn events(&self) -> &[CallEvent] {
        self.stretch.events.get(self.skip..).unwrap_or_default()
    }

    /// The events with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &CallEvent)> {
        (self.first()..).zip(self.events())
    }

    /// The events as `write` makes them bytes; kept for the others who follow, by the number of the form, of which there
    /// are four.
    pub fn encoded(&self, form: usize, write: impl FnOnce(&Self) -> Bytes) -> Bytes {
        match self.stretch.encoded.get(form).filter(|_| self.skip == 0) {
            Some(kept) => kept.get_or_init(|| write(self)).clone(),
            None => write(self),
        }
    }
}
