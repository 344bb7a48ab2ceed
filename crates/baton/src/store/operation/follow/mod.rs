//! Following: events of a call are read, and the store knows who does.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

#[cfg(feature = "redis")]
pub(super) use self::redis::read_page;

use crate::{
    message::{CallId, SessionId},
    store::{EventPage, Facts},
};

/// Reads events of a call, and notes that the session follows it: that it has read what comes before, and, if there is
/// nothing to read, that it is to be woken. A session follows a call once, however many it reads for; it does as long as it
/// lives or until [`UnfollowCall`](super::UnfollowCall).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowCall {
    /// Who follows.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The first event wanted; 1 is the first of all.
    pub from: u64,
    /// What the session is woken with when there is more ([`Woken::follows`](crate::store::Woken::follows)).
    pub number: u64,
    /// Bytes of events, though at least one is given if there is one.
    pub max_bytes: u64,
}

/// The most events in one page.
pub(crate) const EVENTS_AT_ONCE: u32 = 512;

impl Facts for FollowCall {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}

/// The page for these events, the first of them at `from`.
pub(super) fn page(from: u64, events: Vec<bytes::Bytes>, next: u64, ended: bool) -> EventPage {
    EventPage { from, events, next, ended }
}
