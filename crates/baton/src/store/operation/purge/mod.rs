//! Purging: a fleet is removed.

mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{message::SessionId, store::Facts};

/// Removes everything the fleet has stored; refused while a node has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge;

impl Facts for Purge {
    fn session(&self) -> Option<SessionId> {
        None
    }
}
