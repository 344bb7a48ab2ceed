//! Where stores inside this process read the time from.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::watch;

/// The system's wall clock, one that stands still until a test moves it, or one that a simulator reads.
#[derive(Clone, Default)]
pub struct Clock(Reading);

#[derive(Clone, Default)]
enum Reading {
    #[default]
    System,
    Manual(Arc<Hands>),
    By(Arc<dyn Fn() -> u64 + Send + Sync>),
}

/// A clock that is moved by hand.
#[derive(Default)]
struct Hands {
    time: watch::Sender<u64>,
    /// When those who sleep by it want to be woken.
    asleep: Mutex<Vec<u64>>,
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
        Self(Reading::Manual(Arc::new(Hands { time: watch::Sender::new(ms), asleep: Mutex::default() })))
    }

    /// A clock that shows what `read` gives, in milliseconds since 1970: for a simulator, whose time may be paused.
    #[must_use]
    pub fn read_by(read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Reading::By(Arc::new(read)))
    }

    /// Sets a manual clock, forwards or backwards; any other is left alone.
    pub fn set(&self, ms: u64) {
        if let Reading::Manual(manual) = &self.0 {
            manual.time.send_replace(ms);
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Reading::Manual(manual) => *manual.time.borrow(),
            Reading::By(read) => read(),
            Reading::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }
        }
    }
}

impl Clock {
    /// Sleeps for this long by the clock: a manual one wakes when it is set that far.
    pub async fn sleep(&self, time: Duration) {
        let Reading::Manual(hands) = &self.0 else { return tokio::time::sleep(time).await };
        let mut now = hands.time.subscribe();
        let due = *now.borrow() + u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 1).max(1);
        let _asleep = Asleep::until(hands, due);
        // The sender lives as long as this.
        now.wait_for(|now| *now >= due).await.ok();
    }

    /// Whether it stands still until it is set.
    pub(crate) const fn is_manual(&self) -> bool {
        matches!(self.0, Reading::Manual(_))
    }

    #[cfg(feature = "testing")]
    /// How many sleep by a manual clock who are not to be woken yet.
    pub(crate) fn asleep(&self) -> usize {
        let Reading::Manual(hands) = &self.0 else { return 0 };
        let asleep = hands.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *hands.time.borrow();
        asleep.iter().filter(|due| **due > now).count()
    }
}

/// One who sleeps, taken off the list however that ends.
struct Asleep<'a> {
    hands: &'a Hands,
    due: u64,
}

impl<'a> Asleep<'a> {
    fn until(hands: &'a Hands, due: u64) -> Self {
        hands.asleep.lock().unwrap_or_else(PoisonError::into_inner).push(due);
        Self { hands, due }
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let mut asleep = self.hands.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = asleep.iter().position(|due| *due == self.due) {
            asleep.swap_remove(at);
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
