//! Following no longer.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{CallId, SessionId},
    store::Facts,
};

/// The session follows a call no longer; if it does not, nothing happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfollowCall {
    /// Who followed.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The number it follows under: if it follows under another by now, nothing happens either.
    pub number: u64,
}

impl Facts for UnfollowCall {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
