//! Where stores inside this process read the time from.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// The system's wall clock, or one that stands still until a test moves it.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicU64>>);

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(None)
    }

    /// A clock that shows `ms` until [`Clock::set`] is called.
    #[must_use]
    pub fn manual(ms: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(ms))))
    }

    /// Sets a manual clock, forwards or backwards; the system's is left alone.
    pub fn set(&self, ms: u64) {
        if let Some(manual) = &self.0 {
            manual.store(ms, Ordering::SeqCst);
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Some(manual) => manual.load(Ordering::SeqCst),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }
        }
    }
}
