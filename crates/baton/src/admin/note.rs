//! What an operation tells while it lasts.

use std::{fmt, sync::Arc, time::Duration};

use super::{Unknown, wording::span};

/// Something a person who waits for an operation may want to know; shown as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Something stands in the way that may go: it is waited for.
    Waiting {
        /// For how long at most.
        limit: Duration,
        /// What it is.
        why: String,
    },
    /// The store neither answers nor fails; it is waited for.
    Silent {
        /// What keeps it from it, if it knows that.
        why: Option<String>,
    },
    /// The queue that was named is none of the fleet's. The operation goes on: what it finds there is nothing.
    Unknown(Unknown),
}

/// Hears notes as they come.
pub type NoteEar = Arc<dyn Fn(&Note) + Send + Sync>;

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { limit, why } => write!(f, "waiting up to {}: {why}", span(*limit)),
            Self::Silent { why } => {
                f.write_str("the store has not answered yet; still ")?;
                f.write_str(why.as_deref().unwrap_or("waiting"))
            }
            Self::Unknown(unknown) => unknown.fmt(f),
        }
    }
}
