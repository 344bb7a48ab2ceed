//! Why a node ends that nobody asked to.

use crate::{
    message::{InvalidMessage, Name},
    store::StoreError,
};

/// Why a node ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// A name is not usable.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// It has no handler and no source, or none that its role lets it use.
    #[error("this node has nothing to do: give it a handler to work, or a source to generate, as its role allows")]
    NothingToDo,
    /// A queue was given two handlers.
    #[error("queue {0} has two handlers in this node: give it one")]
    QueueTwice(Name),
    /// Two sources have one name.
    #[error("two sources of this node are named {0}: give each a name of its own")]
    SourceTwice(Name),
    /// A queue may have no handler at work.
    #[error("queue {0} has a concurrency of 0, so nothing of it would ever run: take 1 or more, or leave it out")]
    NoConcurrency(Name),
    /// It names more queues, or offers more sources, than a session may.
    #[error("this node has {count} {what}, {most} at most: spread them over several nodes")]
    TooMany {
        /// `queues` or `sources`.
        what: &'static str,
        /// How many it has.
        count: usize,
        /// How many it may have.
        most: usize,
    },
    /// The store refused the node, or cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}
