//! A bell for one that waits for something in the store: heard by the listener of the fleet's visitor, as follows are.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{Fleet, follow::Follows};

/// Rung by the store under its number. A ring may be lost: whoever waits looks again by itself after a while.
pub(crate) struct Bell {
    follows: Arc<Follows>,
    number: u64,
    sound: Arc<Notify>,
}

impl Bell {
    /// What the store is told to ring with.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns when it is rung, or was since it was last asked.
    pub(crate) async fn rung(&self) {
        self.sound.notified().await;
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.follows.take_down(self.number);
    }
}

impl Fleet {
    /// A new bell.
    pub(crate) fn bell(&self) -> Bell {
        let (number, sound) = self.follows.hang_up(self);
        Bell { follows: Arc::clone(&self.follows), number, sound }
    }
}
