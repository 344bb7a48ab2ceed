//! From the formats of earlier releases to this one: a store whose fleet is stopped is looked at, watched, converted.
//!
//! [`Store::standing`](super::Store::standing) tells what is stored and who was seen last;
//! [`Store::convert`](super::Store::convert) converts it, if nobody has called since. In between the caller watches: a
//! store does not know whether a silent session has died, because its fleet clock stands while no call comes.
//! Whatever a session held that is still there goes back with a crash, as if it had been reaped.
//!
//! One step leads from every earlier format to this one. It is one way, it may be killed at any moment, and run again it
//! goes on. A release that changes what is stored changes that step and raises [`FORMAT`]; parcels carry their own format
//! byte and are not touched. Of parcels that are partly gone format 4 had the number left, from format 5 on it is known
//! which: those are looked for among what waits and is claimed, and the bytes of their queues are set right. Format 6 has
//! calls and what is cached, of which there are none before, pages of submits and unreaped, which are of sessions. Format 8 has
//! calls that are named by their birth too, and know where their delayed messages are.

use super::Kind;
use crate::message::SessionId;

/// The format this release reads and writes.
pub const FORMAT: u32 = 8;

/// How stored data stands towards [`FORMAT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The format it is in; nothing if nothing is stored, or if it is in none, as in memory.
    pub format: Option<u32>,
    /// The sessions that are still there.
    pub seen: Vec<SeenSession>,
    /// What every call with a session changes, of all fleets concerned.
    pub stamp: String,
}

/// A session of an earlier release, as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSession {
    /// Its id.
    pub session: SessionId,
    /// Node or client.
    pub kind: Kind,
    /// Where it runs.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// Its lease.
    pub lease_ms: u64,
    /// When its lease ends, on the fleet clock: each of its calls moves that on.
    pub expires: u64,
    /// Store time of its last beat.
    pub beat_ms: u64,
}

impl Standing {
    /// Whether there is something to convert.
    #[must_use]
    pub fn is_older(&self) -> bool {
        self.format.is_some_and(|format| format < FORMAT)
    }

    /// Those that have called, or come, since `earlier`.
    pub fn alive_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = &'a SeenSession> {
        self.seen.iter().filter(|session| !earlier.seen.contains(session))
    }
}

/// What a conversion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Converted {
    /// Sessions that were taken out.
    pub sessions: u64,
    /// Messages they held that are back in their queues.
    pub back: u64,
    /// Messages they held that failed after one crash too many.
    pub failed: u64,
}

/// A step of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Somebody has called since the store was looked at: nothing was done.
    Disturbed,
    /// It is of this format already, perhaps because another run was first: nothing was done.
    Nothing,
    /// A part was done.
    Step {
        /// What.
        done: Converted,
        /// Sessions still to be taken out; with none the data is in the new format.
        left: u64,
    },
}
