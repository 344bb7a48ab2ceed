//! Leaving: a session ends in good order.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{message::SessionId, store::Facts};

/// Ends a session: claims go back without a crash, batons are free. Leaving twice is leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The session.
    pub session: SessionId,
}

impl Facts for Leave {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
