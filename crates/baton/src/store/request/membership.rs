//! Joining, beating, leaving, being reaped, and orders to all.

use bytes::Bytes;

use crate::message::{Digest, Name, SessionId};

/// What kind of caller a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A member of the fleet: may hold batons and claims.
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

/// Extends the lease and tells what the fleet wants of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The session.
    pub session: SessionId,
    /// Rates and latencies for `status` and `performance`; opaque to the store.
    pub report: Bytes,
    /// Queues of which a busy holder of a baton asks whether others see to them.
    pub asks: Vec<Name>,
}

/// The answer to [`Beat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beaten {
    /// Store time in milliseconds.
    pub now_ms: u64,
    /// Offered sources that nobody runs: take one.
    pub due: Vec<Name>,
    /// Batons the session holds, with their epochs; one it does not run, it resigns.
    pub held: Vec<(Name, u64)>,
    /// Sessions past their lease, at most 16: reap them.
    pub expired: Vec<SessionId>,
    /// Claims under which it holds messages, by queue and number: one it does not know, it repeats to get them. At most
    /// [`MAX_TOLD_CLAIMS`] of them.
    pub claims: Vec<(Name, u64)>,
    /// Those of the queues asked about that a session without a baton works for and that give nobody reason to wait:
    /// whatever is claimable in them has been so for less than [`PATIENCE_MS`].
    pub helped: Vec<Name>,
    /// Whether it is asked to stop.
    pub stop: Option<Stop>,
}

/// The most claims told in one [`Beaten`].
pub const MAX_TOLD_CLAIMS: usize = 1_000;
/// How long the front of a queue may wait before a busy holder of a baton works too.
pub const PATIENCE_MS: u64 = 500;

/// How a session is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Finish what runs, then leave.
    Drain,
    /// Leave at once.
    Now,
}

/// Ends a session: claims go back without a loss, batons are free. Leaving twice is leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The session.
    pub session: SessionId,
}

/// Takes back what a session past its lease holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reap {
    /// Who asks.
    pub session: SessionId,
    /// Who is to be reaped.
    pub target: SessionId,
}

/// The answer to [`Reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// Its messages went back or, with their losses used up, to the error registry.
    Taken {
        /// Messages back in their queues.
        back: u64,
        /// Messages dead.
        dead: u64,
    },
    /// Its lease has not run out.
    Alive,
    /// There is no such session (any more).
    Gone,
}

/// An order of an operator; repeating it changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Claims of the queue give nothing until it is resumed.
    Pause(Name),
    /// Claims of the queue go on.
    Resume(Name),
    /// Sessions up to this join number are asked to stop, or all joined so far.
    Stop(Stop, Option<u64>),
}
