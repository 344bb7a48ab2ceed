//! Where stores inside this process read the time from.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// The system's wall clock, one that stands still until a test moves it, or one that a simulator reads.
#[derive(Clone, Default)]
pub struct Clock(Reading);

#[derive(Clone, Default)]
enum Reading {
    #[default]
    System,
    Manual(Arc<AtomicU64>),
    By(Arc<dyn Fn() -> u64 + Send + Sync>),
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Reading::System)
    }

    /// A clock that shows `ms` until [`Clock::set`] is called.
    #[must_use]
    pub fn manual(ms: u64) -> Self {
        Self(Reading::Manual(Arc::new(AtomicU64::new(ms))))
    }

    /// A clock that shows what `read` gives, in milliseconds since 1970: for a simulator, whose time may be paused.
    #[must_use]
    pub fn read_by(read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Reading::By(Arc::new(read)))
    }

    /// Sets a manual clock, forwards or backwards; any other is left alone.
    pub fn set(&self, ms: u64) {
        if let Reading::Manual(manual) = &self.0 {
            manual.store(ms, Ordering::SeqCst);
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Reading::Manual(manual) => manual.load(Ordering::SeqCst),
            Reading::By(read) => read(),
            Reading::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Reading::System => "system",
            Reading::Manual(_) => "manual",
            Reading::By(_) => "simulated",
        };
        f.debug_tuple("Clock").field(&kind).finish()
    }
}
