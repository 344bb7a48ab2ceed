//! A signal for one that waits for something in the store: heard by the listener of the fleet's visitor, as follows are.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{Fleet, follow::Follows};

/// Woken by the store under its number. A wake-up may be lost: the one who waits looks again after a while.
pub(crate) struct StoreSignal {
    follows: Arc<Follows>,
    number: u64,
    sound: Arc<Notify>,
}

impl StoreSignal {
    /// The number that the store wakes it with.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns when it is woken, or was since it was last asked.
    pub(crate) async fn woken(&self) {
        self.sound.notified().await;
    }
}

impl Drop for StoreSignal {
    fn drop(&mut self) {
        self.follows.take_down(self.number);
    }
}

impl Fleet {
    /// A new signal.
    pub(crate) fn signal(&self) -> StoreSignal {
        let (number, sound) = self.follows.hang_up(self);
        StoreSignal { follows: Arc::clone(&self.follows), number, sound }
    }
}
