//! Taking the baton of a source.

#[cfg(feature = "memory")]
mod engine;
#[cfg(feature = "redis")]
mod redis;

use crate::{
    message::{Name, SessionId},
    store::Facts,
};

/// Takes the baton of an offered source if nobody has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Who takes.
    pub session: SessionId,
    /// The source.
    pub source: Name,
}

/// The answer to [`Take`]; the holder itself gets the same epoch again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Larger than every earlier epoch of this source.
    pub epoch: u64,
    /// Where to go on; empty at the start.
    pub cursor: String,
    /// The last batch pushed in this epoch.
    pub batch_no: u64,
}

impl Facts for Take {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }
}
