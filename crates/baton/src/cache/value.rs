//! What computations give and readers get.

use std::{fmt, num::ParseIntError, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{message::InvalidMessage, store::StoreError};

/// Counts invalidations: of two values of a key the one with the higher generation knows of more of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Generation {
    type Err = ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What a computation gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub(super) bytes: Bytes,
    pub(super) ttl: Option<Duration>,
}

impl Value {
    /// A value that is kept for as long as the cache keeps values. An empty one is one too.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), ttl: None }
    }

    /// It is kept for this long.
    #[must_use]
    pub fn with_ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// It is not kept: only those who wait for it in this process get it, and readers elsewhere do not wait for each other.
    #[must_use]
    pub fn uncached(self) -> Self {
        self.with_ttl(Duration::ZERO)
    }
}

impl<T: Into<Bytes>> From<T> for Value {
    fn from(bytes: T) -> Self {
        Self::new(bytes)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was kept in this process, or in the store.
    Hit {
        /// In this process.
        local: bool,
    },
    /// Another reader's computation was waited for.
    Collapsed {
        /// Whether the value is kept.
        stored: bool,
    },
    /// It was computed for this reader.
    Computed {
        /// Whether the value is kept.
        stored: bool,
    },
}

/// A value as a reader gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The value.
    pub value: Bytes,
    /// Where it came from.
    pub source: Source,
    /// No invalidation up to this generation covers it, other than those that it knows of.
    pub generation: Generation,
    /// How long ago it was computed.
    pub age: Duration,
    /// For how long it is kept from now on; nothing if it is not kept.
    pub ttl: Option<Duration>,
}

/// Why there is no value. All who shared a computation get the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The computation failed with this.
    #[error("{0}")]
    Failed(Arc<str>),
    /// The computation panicked with this.
    #[error("the computation panicked: {0}")]
    Panicked(Arc<str>),
    /// It took too long.
    #[error("the computation took over {0:?}")]
    Timeout(Duration),
    /// The computation was dropped with the runtime it was begun in.
    #[error("the computation was dropped with its runtime")]
    Dropped,
    /// The runtime has no timers, which computations need.
    #[error("this tokio runtime has no timers: build it with enable_all(), or take #[tokio::main]")]
    NoTimers,
    /// The key, or prefix, is too long.
    #[error(transparent)]
    Key(#[from] InvalidMessage),
    /// An invalidation that the store has not confirmed: it may not have taken effect. Repeat it.
    #[error(transparent)]
    Store(#[from] StoreError),
}
