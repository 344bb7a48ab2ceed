//! What happens to a node, as values: its log, users' observers and `tracing` read the same ones.
//!
//! The text of an event is one line for a person. Nobody needs to read that line to know what happened: all that is in
//! it is in the fields too.

mod text;

use std::time::Duration;

use super::source::SourceError;
use crate::{
    Level,
    message::{MessageId, Name, SessionId},
    store::{Refusal, StoreError, StoreEvent},
};

/// Something that happened to a node or to its store. Its text is one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The node has joined the fleet.
    Joined {
        /// As which session.
        session: SessionId,
        /// Where it runs, as others see it.
        host: String,
        /// Its process id there.
        pid: u32,
    },
    /// The store no longer knows the session: what it held goes to others, and the node joins again.
    SessionOver {
        /// Which session.
        session: SessionId,
    },
    /// The node has left in good order.
    Left {
        /// Which session.
        session: SessionId,
    },
    /// The node has gone and could not notify the store: others take over when the lease has ended.
    LeftUnheard {
        /// Which session.
        session: SessionId,
    },
    /// Another node died: this one found it past its lease and took its messages back. One node of the fleet reports it.
    NodeDied {
        /// Where it ran: host and process id, as `host/7`.
        node: String,
        /// How long it was silent; nothing if another process began to take its messages back.
        silent: Option<Duration>,
        /// How many messages go back to which queue.
        back: Vec<(Name, u64)>,
        /// How many messages failed for good since too many nodes died with them.
        failed: u64,
    },
    /// An admin stops the node.
    StopOrdered {
        /// Whether it hands everything back at once; otherwise it finishes what runs.
        at_once: bool,
    },
    /// The store has not answered for a while; the node waits for it.
    StoreAway {
        /// Why, as the last call says.
        error: StoreError,
    },
    /// The end of [`Event::StoreAway`].
    StoreBack {
        /// How long the store was away.
        after: Duration,
    },
    /// The store has taken nothing new for a while: sources wait, and so do results and follow-ups.
    StoreFull {
        /// Why, as the last call says.
        error: StoreError,
    },
    /// The end of [`Event::StoreFull`].
    StoreTakes {
        /// How long it took nothing new.
        after: Duration,
    },
    /// The node has joined again and found other data than before: the former data are gone from the store, or a backup
    /// has taken their place.
    StoreRenewed {
        /// As which session it has joined.
        session: SessionId,
    },
    /// The node has taken a baton and begins to generate.
    BatonTaken {
        /// For which session.
        session: SessionId,
        /// Of which source.
        source: Name,
        /// The queue the source feeds.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Where the source goes on; empty at its start.
        cursor: String,
    },
    /// A batch of a source was stored.
    Pushed {
        /// The source.
        source: Name,
        /// The queue it went to.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Which batch of the epoch.
        batch_no: u64,
        /// The cursor before it.
        from: String,
        /// The cursor after it.
        to: String,
        /// How many messages it had.
        count: u64,
        /// The id of the first, if the store still knew it.
        first: Option<u64>,
        /// Whether an earlier attempt had stored it already.
        duplicate: bool,
    },
    /// A batch was refused because its queue is full, or because of a gap: one before it is not stored. It is sent again.
    PushRefused {
        /// The source.
        source: Name,
        /// The queue it goes to.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Which batch of the epoch.
        batch_no: u64,
        /// [`Refusal::Full`] or [`Refusal::Gap`].
        refusal: Refusal,
    },
    /// The source has no more messages.
    SourceEnded {
        /// The source.
        source: Name,
        /// The epoch of the baton.
        epoch: u64,
    },
    /// The baton is another's now, or is taken again.
    BatonPassed {
        /// The source.
        source: Name,
        /// The epoch of the baton that this node had.
        epoch: u64,
    },
    /// A source cannot go on. If that is [for good](SourceError::is_for_good), this node leaves it alone from now on.
    SourceFailed {
        /// The source.
        source: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Why.
        error: SourceError,
    },
    /// A handler failed, panicked or took too long.
    MessageFailed {
        /// The queue of the message.
        queue: Name,
        /// Its id there.
        id: MessageId,
        /// Which attempt this was, from 1.
        attempt: u32,
        /// Why.
        error: String,
        /// After what time it is to be tried again; if not at all, it goes to the errors.
        retry_after: Option<Duration>,
    },
    /// A result was too long to be kept; its message is done.
    ResultLeftOut {
        /// The queue of the message.
        queue: Name,
        /// Its id there.
        id: MessageId,
        /// How long the result was.
        bytes: usize,
    },
    /// The store has no room for the results and follow-ups of some messages: they are reported again until it has, or go
    /// back when the node stops.
    NoRoom {
        /// The queue.
        queue: Name,
        /// How many messages.
        messages: u64,
    },
    /// Outcomes were refused: others have the messages.
    RunsRefused {
        /// The queue of the messages.
        queue: Name,
        /// How many runs of messages.
        runs: usize,
        /// How many messages.
        messages: u64,
    },
    /// The session was over before messages that were begun here were reported: others run them again.
    RunsLost {
        /// The queue of the messages.
        queue: Name,
        /// How many messages.
        messages: u64,
    },
    /// The observer of the node panicked, for the first time: nothing else comes of it.
    ObserverPanicked {
        /// What the panic says.
        error: String,
    },
    /// Something happened to the store.
    Store(StoreEvent),
}

impl Event {
    /// How much it matters.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::Pushed { .. } | Self::PushRefused { .. } => Level::Debug,
            Self::Joined { .. }
            | Self::Left { .. }
            | Self::StopOrdered { .. }
            | Self::StoreBack { .. }
            | Self::StoreTakes { .. }
            | Self::BatonTaken { .. }
            | Self::SourceEnded { .. }
            | Self::BatonPassed { .. }
            | Self::MessageFailed { retry_after: Some(_), .. } => Level::Info,
            Self::SessionOver { .. }
            | Self::LeftUnheard { .. }
            | Self::StoreAway { .. }
            | Self::StoreFull { .. }
            | Self::StoreRenewed { .. }
            | Self::NodeDied { .. }
            | Self::MessageFailed { retry_after: None, .. }
            | Self::ResultLeftOut { .. }
            | Self::NoRoom { .. }
            | Self::RunsRefused { .. }
            | Self::RunsLost { .. } => Level::Warn,
            Self::SourceFailed { error, .. } if error.is_for_good() => Level::Error,
            Self::SourceFailed { .. } => Level::Warn,
            Self::ObserverPanicked { .. } => Level::Error,
            Self::Store(event) => event.level(),
        }
    }

    /// The name of its kind, for programs that read logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Joined { .. } => "joined",
            Self::SessionOver { .. } => "session-over",
            Self::Left { .. } => "left",
            Self::LeftUnheard { .. } => "left-unheard",
            Self::NodeDied { .. } => "node-died",
            Self::StopOrdered { .. } => "stop-ordered",
            Self::StoreAway { .. } => "store-away",
            Self::StoreBack { .. } => "store-back",
            Self::StoreFull { .. } => "store-full",
            Self::StoreTakes { .. } => "store-takes",
            Self::StoreRenewed { .. } => "store-renewed",
            Self::BatonTaken { .. } => "baton-taken",
            Self::Pushed { .. } => "pushed",
            Self::PushRefused { .. } => "push-refused",
            Self::SourceEnded { .. } => "source-ended",
            Self::BatonPassed { .. } => "baton-passed",
            Self::SourceFailed { .. } => "source-failed",
            Self::MessageFailed { .. } => "message-failed",
            Self::ResultLeftOut { .. } => "result-left-out",
            Self::NoRoom { .. } => "no-room",
            Self::RunsRefused { .. } => "runs-refused",
            Self::RunsLost { .. } => "runs-lost",
            Self::ObserverPanicked { .. } => "observer-panicked",
            Self::Store(event) => event.name(),
        }
    }

    /// Whether healthy nodes have many of its kind: pushes, pushes that are sent again, messages that failed. A log for
    /// people leaves these out or sums them up.
    #[must_use]
    pub const fn is_routine(&self) -> bool {
        matches!(self, Self::Pushed { .. } | Self::PushRefused { .. } | Self::MessageFailed { .. })
    }
}
