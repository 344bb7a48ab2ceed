//! Purging: a fleet is removed.

mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{message::SessionId, store::Facts};

/// Removes everything the fleet has stored; refused while a node has a session. The answer is whether this call has
/// removed it: not if nobody has joined or ordered anything since the last purge, or if another one was quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge;

impl Facts for Purge {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
