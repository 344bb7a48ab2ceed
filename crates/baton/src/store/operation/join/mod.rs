//! Joining: a session comes, with the sources it offers and the queues it works for.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use std::collections::BTreeSet;

use super::malformed;
use crate::{
    message::{Digest, Name, SessionId},
    store::{Facts, MAX_LOTS, Refusal, StoreError},
};

/// What kind of caller a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A node of the fleet: may hold batons and claims.
    Node,
    /// A visitor (push, errors, gateway): not shown among the nodes, never offered a baton.
    Client,
}

/// A source a session is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub source: Name,
    /// The queue its messages go to.
    pub queue: Name,
    /// What it is, so that two different sources under one name are noticed.
    pub definition: Digest,
    /// Whether its cursor means the same under every definition of its kind: joining with it redefines a source that
    /// no live session offers otherwise. Only a join looks at this; it is not kept.
    pub adopts: bool,
}

/// Registers a session. Repeating it answers the same; its id is random and used once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The new session.
    pub session: SessionId,
    /// Node or client.
    pub kind: Kind,
    /// Where it runs, for people.
    pub host: String,
    /// Its process id there, for people.
    pub pid: u32,
    /// The queues it works for.
    pub queues: Vec<Name>,
    /// Silence, on the fleet clock, after which it may be reaped.
    pub lease_ms: u64,
    /// How often it means to beat: at most a third of the lease.
    pub heartbeat_ms: u64,
    /// The sources it can run; none for a pure worker.
    pub offers: Vec<Offer>,
    /// The join number of the session this one goes on for, so that an order to stop still reaches it.
    pub former: Option<u64>,
}

/// The answer to [`Join`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Random text made when the fleet's data was: another one means other data.
    pub incarnation: String,
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// Its place among all joins, or that of the session it goes on for.
    pub join_no: u64,
}

impl Facts for Join {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        let fits = (10..=86_400_000).contains(&self.lease_ms) && self.heartbeat_ms.saturating_mul(3) <= self.lease_ms;
        if !fits {
            return Err(Refusal::Lease { lease_ms: self.lease_ms, heartbeat_ms: self.heartbeat_ms }.into());
        }
        if self.offers.len() > MAX_LOTS || self.queues.len() > MAX_LOTS {
            return malformed("a session names up to 1024 sources and queues");
        }
        let sources: BTreeSet<&Name> = self.offers.iter().map(|offer| &offer.source).collect();
        if sources.len() != self.offers.len() {
            return malformed("a session offers a source once");
        }
        Ok(())
    }
}
