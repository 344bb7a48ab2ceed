//! The server's time as this process knows it, so that not every push has to ask the server for it. Good for telling when
//! a message was pushed, and for nothing that must be right: every decision is made on the server's own clock.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long what was heard holds: a clock that was set is noticed after so long.
const HOLDS: Duration = Duration::from_secs(1);

/// What the server last said the time is, and when that was.
#[derive(Debug, Default)]
pub(super) struct StoreClock(Mutex<Option<(Instant, u64)>>);

impl StoreClock {
    /// Milliseconds since 1970; nothing if it was not heard lately.
    pub(super) fn now(&self) -> Option<u64> {
        let (at, ms) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let past = at.elapsed();
        (past < HOLDS).then(|| ms + past.as_millis() as u64)
    }

    /// The server said that it is so late.
    pub(super) fn set(&self, ms: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), ms));
    }
}
