//! How a cache behaves, and how one reader wants to be answered.

use std::time::Duration;

use super::Generation;

/// How a cache behaves; the defaults are those of [`CacheOptions::new`].
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// How long a value is kept where it does not say so itself; 30 s by default.
    pub ttl: Duration,
    /// Bytes that are kept in this process, keys and 256 bytes a value counted; 64 MiB by default. One value that has over
    /// an eighth of them is not kept; with [`Cache::shared`](super::Cache::shared) none of over 1 MiB is, whatever this says.
    pub bytes: u64,
    /// Bytes that are kept in the store, counted the same way; 256 MiB by default. One value of over 1 MiB is not kept: every
    /// reader who does not wait for another of its process computes it.
    pub shared_bytes: u64,
    /// How long a computation may take, and how long one is waited for that another process makes; 30 s by default.
    pub timeout: Duration,
    /// For how long the error of a computation answers those who ask for the same; 100 ms by default.
    pub error_hold: Duration,
    #[doc(hidden)] // For the test that each of them is needed.
    pub left_out: Option<Check>,
}

impl CacheOptions {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            bytes: 64 << 20,
            shared_bytes: 256 << 20,
            timeout: Duration::from_secs(30),
            error_hold: Duration::from_millis(100),
            left_out: None,
        }
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What keeps a reader in this process from a value that is too old.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Whether something newer than a value covers its key.
    Hit,
    /// Whether something newer than a computation covers its key.
    Join,
    /// Whether the store was heard within half a lease.
    Window,
    /// Whether the generation that the reader names is known.
    Least,
}

/// What may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Mode {
    /// Nothing: every reader computes.
    Off,
    /// Readers who ask for the same at the same time share one computation in this process; nothing is kept.
    Batch,
    /// They share it in all of the fleet if the cache is shared, and its value is kept.
    #[default]
    On,
}

/// How one reader wants to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// What it may share with others.
    pub mode: Mode,
    /// It knows of this generation: a value that an invalidation up to it covers is too old. A generation that the store
    /// has not reached, as after a destruction, is answered by a computation that nobody shares.
    pub min_generation: Option<Generation>,
}

impl Reading {
    /// Sharing everything, as is the default.
    #[must_use]
    pub const fn on() -> Self {
        Self { mode: Mode::On, min_generation: None }
    }

    /// Sharing so much.
    #[must_use]
    pub const fn by(mode: Mode) -> Self {
        Self { mode, min_generation: None }
    }

    /// Not older than an invalidation that gave this generation.
    #[must_use]
    pub const fn since(self, generation: Generation) -> Self {
        Self { min_generation: Some(generation), ..self }
    }
}
