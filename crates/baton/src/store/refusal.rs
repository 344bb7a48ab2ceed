//! How a store says no, and how it fails.

use crate::{
    drivers::Missing,
    message::{Digest, InvalidMessage, Name, SessionId},
};

/// A refusal is an answer: the store looked, found the request not to be in order, and changed nothing but the
/// session's lease and, where named, a counter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The session is unknown: it was reaped, it left, or the store lost it in a rollback. Join anew.
    #[error("this session is over: its lease ran out and its work was given to others")]
    Stale,
    /// The baton named is not the one in force.
    #[error("the baton of source {source_name} has passed on")]
    StaleBaton {
        /// The source.
        source_name: Name,
    },
    /// A push does not begin where the stored cursor stands.
    #[error("the source stands at {cursor:?} after batch {batch_no}")]
    Gap {
        /// The stored cursor; empty at the start.
        cursor: String,
        /// The last batch taken in this epoch.
        batch_no: u64,
    },
    /// The queue holds as many bytes as the caller allows.
    #[error("queue {queue} is full: {bytes} bytes are waiting")]
    Full {
        /// The queue.
        queue: Name,
        /// Parcel bytes stored.
        bytes: u64,
    },
    /// The source has ended and stays so until it is rewound.
    #[error("source {source_name} has ended; rewinding starts it again")]
    Ended {
        /// The source.
        source_name: Name,
    },
    /// Another live session holds the baton.
    #[error("session {holder} holds the baton of source {source_name}")]
    BatonHeld {
        /// The source.
        source_name: Name,
        /// Who holds it.
        holder: SessionId,
    },
    /// No source of this name is known, or the session did not offer it.
    #[error("source {source_name} was not offered by this session")]
    NotOffered {
        /// The source.
        source_name: Name,
    },
    /// The source is known with another definition or another queue.
    #[error("source {source_name} is known with another definition: give this one another name, or rewind it")]
    Definition {
        /// The source.
        source_name: Name,
    },
    /// A live session offers the source with another definition or another queue.
    #[error(
        "session {session} offers source {source_name} with another definition: stop that node first, or give this one another name"
    )]
    DefinitionInUse {
        /// The source.
        source_name: Name,
        /// The first session that offers it otherwise.
        session: SessionId,
    },
    /// A live session offers the source.
    #[error("session {session} offers source {source_name}: stop that node first")]
    Offered {
        /// The source.
        source_name: Name,
        /// The first session that offers it.
        session: SessionId,
    },
    /// The store was written by a newer release.
    #[error("the store has format {found}, this program knows formats up to {known}: use a newer release")]
    NewerFormat {
        /// The format found.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The store was written by an older release, or a migration of it was not finished.
    #[error("the store has format {found}, this program needs format {known}: stop the fleet and migrate the store")]
    OlderFormat {
        /// The format found.
        found: u32,
        /// The format needed here.
        known: u32,
    },
    /// A heartbeat too slow for its lease, or a lease out of bounds.
    #[error(
        "a heartbeat of {heartbeat_ms} ms does not fit a lease of {lease_ms} ms: at most a third of it, lease 10 ms to 1 day"
    )]
    Lease {
        /// The lease asked for.
        lease_ms: u64,
        /// The heartbeat asked for.
        heartbeat_ms: u64,
    },
    /// Nothing is held under this claim number and it cannot be used again: go on with the next.
    #[error("claim number {claim_no} is spent")]
    Spent {
        /// The number.
        claim_no: u64,
    },
    /// A numbered call came out of turn.
    #[error("call number out of turn: the last one taken was {last}")]
    OutOfTurn {
        /// The last number taken.
        last: u64,
    },
    /// The bookmark stands elsewhere.
    #[error("the bookmark stands at line {lines} with another digest")]
    Bookmark {
        /// Lines taken under this key.
        lines: u64,
        /// Their digest.
        digest: Digest,
    },
    /// Another live session removes the failed messages of this queue.
    #[error("session {holder} is draining the errors of this queue")]
    RemovalBusy {
        /// The session that removes them.
        holder: SessionId,
    },
    /// A node works for the queue, or offers a source that feeds it.
    #[error("session {session} works for queue {queue} or feeds it: stop that node first")]
    QueueInUse {
        /// The queue.
        queue: Name,
        /// The first session that does.
        session: SessionId,
    },
    /// The queue holds messages.
    #[error("queue {queue} holds {messages} messages: purge it first")]
    QueueNotEmpty {
        /// The queue.
        queue: Name,
        /// Those that wait, are in flight or have failed.
        messages: u64,
    },
    /// The session does not remove the failed messages of this queue (any more).
    #[error("this session does not remove the failed messages of that queue")]
    NotRemover,
    /// The fleet still has nodes.
    #[error("{nodes} node(s) of this fleet are alive: stop them first")]
    NodesAlive {
        /// How many.
        nodes: u64,
    },
    /// The fleet's data is being removed, or that was begun and not finished.
    #[error("this fleet is being destroyed: destroy it again to finish")]
    Destroying,
    /// The store is held still for a recount; retried by the library.
    #[error("the store is held for a recount for up to {ms} ms more")]
    Held {
        /// Milliseconds the hold has left.
        ms: u64,
    },
    /// There is no such call, or it is forgotten.
    #[error("there is no such call: it never was, or it ended over an hour ago")]
    NoCall,
    /// The id of the call is another message's: since its push the store has lost data, and ids began again.
    #[error(
        "another message has this id by now: the store lost data after the push; what became of it is not known, push it again if it may run twice"
    )]
    OtherCall,
    /// The message is not held under this claim, or is of no call, or its call has ended: it tells nothing more.
    #[error("this message is held by another session by now, is no call, or its call has ended")]
    NotHeld,
    /// The keys of a call's events have as many bytes as they may.
    #[error("the keys of this call's events have 16 MiB: no further event with a key is taken")]
    EmitKeysFull,
    /// Events before this one are not kept any more.
    #[error("events before number {first} are not kept any more")]
    EventsGone {
        /// The first one kept.
        first: u64,
    },
    /// The queue has no id left below 2⁵³.
    #[error("queue {queue} has used up its ids")]
    IdsUsedUp {
        /// The queue.
        queue: Name,
    },
    /// The request breaks a rule of the contract; a bug in the caller.
    #[error("malformed request: {0}")]
    Malformed(&'static str),
}

/// Why a call to a store gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store answered no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be reached, or the reply was lost: whether the call took effect is not known. Repeat it.
    #[error("{0}")]
    Unreachable(String),
    /// What answered is not a store this program can use; repeating does not help. The text ends with what to do.
    #[error("{0}")]
    Unfit(String),
    /// The store takes nothing new: it has no room (memory or disk), or might drop it. Nothing of the call was kept. The
    /// text ends with what to do.
    #[error("{0}")]
    NoRoom(String),
    /// The store's data does not follow its format.
    #[error("damaged store: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Whether the same call may succeed when repeated.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::NoRoom(_) | Self::Refused(Refusal::Held { .. }))
    }
}

impl From<Missing> for StoreError {
    fn from(missing: Missing) -> Self {
        Self::Unfit(missing.to_string())
    }
}

impl From<InvalidMessage> for StoreError {
    fn from(invalid: InvalidMessage) -> Self {
        Self::Damaged(invalid.to_string())
    }
}
