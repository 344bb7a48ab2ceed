//! The seats of a queue: how many handlers of it may be at work in one node.
//!
//! A seat is taken for as long as something is at work in it: a task, or a thread that a blocking function still holds
//! after its message was given up. They are counted over all sessions of the node, so that what an earlier session left
//! behind is no free seat for the next.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// All seats of a queue in one node.
#[derive(Debug)]
pub(super) struct Seats {
    count: usize,
    taken: AtomicUsize,
    /// Whether somebody went without.
    wanted: AtomicBool,
    /// Rung when the dispatcher of the queue should look.
    bell: Notify,
}

/// A seat that is taken; it is free again when the last clone is gone.
#[derive(Debug)]
pub(super) struct Seat(Arc<Seats>);

impl Seats {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { count, taken: AtomicUsize::new(0), wanted: AtomicBool::new(false), bell: Notify::new() })
    }

    /// How many are not held by others than the `mine` of who asks, who is called by the bell when that changes.
    pub(super) fn open_to(&self, mine: usize) -> usize {
        let others = || self.taken.load(Ordering::SeqCst).saturating_sub(mine);
        if others() == 0 {
            return self.count;
        }
        self.wanted.store(true, Ordering::SeqCst);
        self.count.saturating_sub(others())
    }

    /// A free seat; whoever goes without is called by the bell when one is left.
    pub(super) fn take(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let sit = |taken: usize| (taken < self.count).then_some(taken + 1);
        let sat = || self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, sit).is_ok();
        if !sat() {
            self.wanted.store(true, Ordering::SeqCst);
            // One that was left before the wish was written rang for nobody.
            if !sat() {
                return None;
            }
        }
        Some(Arc::new(Seat(Arc::clone(self))))
    }

    /// Calls the dispatcher.
    pub(super) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Returns when the dispatcher is called.
    pub(super) async fn called(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        if self.0.wanted.swap(false, Ordering::SeqCst) {
            self.0.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_seat_is_free_when_the_last_who_holds_it_is_gone_and_rings_only_if_one_was_missed() {
        let seats = Seats::new(2);
        let (one, two) = (seats.take().unwrap(), seats.take().unwrap());
        let thread = one.clone();
        drop(two);
        assert!(seats.called().now_or_never().is_none(), "nobody went without");
        let two = seats.take().unwrap();
        assert!(seats.take().is_none());
        drop(one);
        assert!(seats.take().is_none(), "a thread still holds it");
        drop(thread);
        assert!(seats.called().now_or_never().is_some());
        assert_eq!((seats.open_to(1), seats.open_to(0)), (2, 1));
        drop(two);
        assert!(seats.called().now_or_never().is_some(), "an earlier session's");
    }
}
