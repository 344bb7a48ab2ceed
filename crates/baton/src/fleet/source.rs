//! Sources: pull streams that run on exactly one node of the fleet.

use std::fmt;

use super::BoxFuture;
use crate::{
    message::{Body, InvalidMessage, Parcel, ParcelBuilder},
    store::Clock,
};

/// Why a source cannot go on; its node gives the baton back and says so.
///
/// Most causes pass: the node tries again after a second. One that is [`SourceError::for_good`] would be met again by
/// every further attempt, so this node makes none; others that offer the source may still run it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct SourceError {
    cause: String,
    lasts: Lasts,
}

/// How long a cause lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    AWhile,
    UntilCorrected,
    UntilRewound,
}

impl SourceError {
    /// An error that may pass, with this cause, in one line.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string(), lasts: Lasts::AWhile }
    }

    /// An error that stays until somebody corrects its cause, told in one line.
    pub fn for_good(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string(), lasts: Lasts::UntilCorrected }
    }

    /// An error for good that is over once the source is rewound, which its cause says too.
    pub fn until_rewound(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string(), lasts: Lasts::UntilRewound }
    }

    /// Whether trying again is in vain.
    #[must_use]
    pub const fn is_for_good(&self) -> bool {
        !matches!(self.lasts, Lasts::AWhile)
    }

    /// Whether rewinding the source helps.
    #[must_use]
    pub const fn is_until_rewound(&self) -> bool {
        matches!(self.lasts, Lasts::UntilRewound)
    }
}

/// The same message would be made again.
impl From<InvalidMessage> for SourceError {
    fn from(invalid: InvalidMessage) -> Self {
        Self::for_good(invalid)
    }
}

impl From<std::io::Error> for SourceError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}

/// What a stream of messages is and how it is opened, on whichever node holds its baton.
pub trait Source: Send + Sync + 'static {
    /// What makes it this source and no other: two sources of one name must agree on it. Things that may change from
    /// one run to the next (how fast it is) are left out.
    fn definition(&self) -> String;

    /// Whether its cursor means the same however it is defined: then it may be redefined, and feed another queue, once no
    /// live node offers it as it was. Otherwise another definition is refused until the source is rewound.
    fn adopts(&self) -> bool {
        false
    }

    /// Opens the stream behind `cursor`, which is empty at the start and otherwise one that the stream gave.
    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>>;

    /// The same for a source that goes by a clock: its fleet's, so that tests have it in their hands.
    fn open_by<'a>(&'a self, cursor: &'a str, clock: &Clock) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        let _unused = clock;
        self.open(cursor)
    }
}

/// An open source. It is pulled only while the store takes messages.
pub trait Stream: Send {
    /// Adds bodies to the batch, at least one unless it ends, and says where it then stands with [`Batch::reach`]. A
    /// pull may also only move the cursor, to have it stored before the next one reads what cannot be read again.
    /// It waits for its next message if it has none, and should stop at [`Batch::is_full`].
    ///
    /// The future may be dropped while it waits: nothing of a dropped pull is pushed, and the stream is opened anew.
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>>;
}

/// Whether a stream goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There may be more.
    More,
    /// It has ended for good; the batch may still hold its last messages.
    End,
}

/// Messages that a stream hands over together.
#[derive(Debug, Default)]
pub struct Batch {
    builder: ParcelBuilder,
    cursor: Option<String>,
}

impl Batch {
    /// Messages after which a batch is full.
    pub const MESSAGES: usize = 1024;
    /// Body bytes after which a batch is full.
    pub const BYTES: usize = 1 << 20;

    /// Adds a JSON body.
    ///
    /// # Errors
    /// [`InvalidMessage::BodyTooLarge`] over the limit of a body.
    pub fn add(&mut self, body: &[u8]) -> Result<(), InvalidMessage> {
        self.builder.add(Body::new(body)?)
    }

    /// Whether the stream should hand over now.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.builder.len() >= Self::MESSAGES || self.builder.body_bytes() >= Self::BYTES
    }

    /// Says where the stream stands behind all bodies added so far.
    pub fn reach(&mut self, cursor: impl fmt::Display) {
        self.cursor = Some(cursor.to_string());
    }

    /// The messages and the cursor behind them, if the stream said where it stands; the batch is empty afterwards.
    pub fn take(&mut self) -> (Option<Parcel>, Option<String>) {
        (self.builder.finish(), self.cursor.take())
    }
}
