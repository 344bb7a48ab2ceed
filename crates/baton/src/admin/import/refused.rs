//! Why an import ended before its input did.

use super::{Account, BadBody};
use crate::{
    admin::wording::size,
    message::{Key, Name},
    store::{Refusal, StoreError},
};

/// An import that ended early, and what it had come to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}{}", account.as_ref().map(|account| format!("; {account}")).unwrap_or_default())]
pub struct ImportError {
    /// Why.
    pub cause: ImportCause,
    /// What is stored and what is not; nothing if it had not begun.
    pub account: Option<Account>,
}

impl<C: Into<ImportCause>> From<C> for ImportError {
    fn from(cause: C) -> Self {
        Self { cause: cause.into(), account: None }
    }
}

/// Why an import ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportCause {
    /// A body that cannot be taken.
    #[error("{at} {why}")]
    Bad {
        /// Where in the input it is.
        at: String,
        /// What is wrong with it.
        why: BadBody,
    },
    /// The lines taken under the key before are not these; nothing was stored.
    #[error(
        "the name {:?} stands for other lines, or for another queue than {queue}: the first {} pushed under it are not these",
        key.as_str(), counted(*lines)
    )]
    OtherInput {
        /// The key.
        key: Key,
        /// The queue that was named.
        queue: Name,
        /// Lines taken under the key before.
        lines: u64,
    },
    /// There are fewer lines than were taken under the key before; nothing was stored.
    #[error("the input has {}, but {lines} were pushed under the name {:?} before", counted(*found), key.as_str())]
    TooShort {
        /// The key.
        key: Key,
        /// Lines in the input.
        found: u64,
        /// Lines taken under the key before.
        lines: u64,
    },
    /// The key was first used for another queue; nothing was stored.
    #[error(
        "the name {:?} belongs to {}: it is bound to the queue it was first used for",
        key.as_str(),
        of.as_ref().map_or_else(|| format!("another queue than {queue}, or to one that was removed"), |of| format!("queue {of}, not to {queue}"))
    )]
    OtherQueue {
        /// The key.
        key: Key,
        /// The queue that was named.
        queue: Name,
        /// The queue it is of, if only one can be.
        of: Option<Name>,
    },
    /// Another import under the key is under way.
    #[error("another push under the name {:?} is under way", key.as_str())]
    KeyInUse {
        /// The key.
        key: Key,
    },
    /// The data of the fleet went while the import was under way: it was removed, flushed or replaced. Nothing was stored
    /// since.
    #[error(
        "the store has lost the data of this fleet while this push was under way (removed, flushed or replaced): the {} \
         stored before that are gone",
        counted(*before)
    )]
    Destroyed {
        /// Lines stored before, also by former runs under the key.
        before: u64,
    },
    /// The input itself failed.
    #[error("cannot read {name}: {why}")]
    Unreadable {
        /// Which.
        name: String,
        /// How.
        why: String,
    },
    /// Nobody took what was read.
    #[error("the push was broken off")]
    BrokenOff,
    /// It was cancelled.
    #[error("interrupted")]
    Interrupted {
        /// Whether the store had not answered the last call by then.
        unanswered: bool,
    },
    /// The queue held as many bytes as are allowed for too long.
    #[error("queue {queue} is full: it holds its bound of {}", size(*bound))]
    Full {
        /// The queue.
        queue: Name,
        /// How many bytes it may hold.
        bound: u64,
    },
    /// The thread that reads could not be started.
    #[error("cannot start: {0}")]
    Thread(String),
    /// A fault in this library.
    #[error("a fault in baton itself")]
    Fault,
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ImportCause {
    /// That the data of the fleet went, if that is why an import ended which had stored so many lines.
    pub(super) fn of_destroy(&self, stored: u64) -> Option<Self> {
        match self {
            Self::Destroyed { .. } => Some(self.clone()),
            Self::Store(StoreError::Refused(Refusal::Destroying)) if stored > 0 => {
                Some(Self::Destroyed { before: stored })
            }
            _ => None,
        }
    }
}

/// So many lines, for people.
fn counted(lines: u64) -> String {
    format!("{lines} line{}", if lines == 1 { "" } else { "s" })
}
