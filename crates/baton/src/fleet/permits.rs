//! The permits of a queue: how many handlers of it may be at work in one node.
//!
//! A permit is taken for as long as something is at work with it: a task, or a thread that a blocking function still holds
//! after its message was given up. They are counted over all sessions of the node, so that what an earlier session left
//! behind is no free permit for the next.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// All permits of a queue in one node.
#[derive(Debug)]
pub(super) struct Permits {
    count: usize,
    taken: AtomicUsize,
    /// Whether somebody went without.
    wanted: AtomicBool,
    /// Woken when the dispatcher of the queue should look.
    signal: Notify,
}

/// A permit that is taken; it is free again when the last clone is gone.
#[derive(Debug)]
pub(super) struct Permit(Arc<Permits>);

impl Permits {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { count, taken: AtomicUsize::new(0), wanted: AtomicBool::new(false), signal: Notify::new() })
    }

    /// How many are not held by others than the `mine` of who asks, who is called by the signal when that changes.
    pub(super) fn open_to(&self, mine: usize) -> usize {
        let others = || self.taken.load(Ordering::SeqCst).saturating_sub(mine);
        if others() == 0 {
            return self.count;
        }
        self.wanted.store(true, Ordering::SeqCst);
        self.count.saturating_sub(others())
    }

    /// A free permit; whoever goes without is called by the signal when one is given back.
    pub(super) fn take(self: &Arc<Self>) -> Option<Arc<Permit>> {
        let grant = |taken: usize| (taken < self.count).then_some(taken + 1);
        let granted = || self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, grant).is_ok();
        if !granted() {
            self.wanted.store(true, Ordering::SeqCst);
            // One that was given back before the wish was written rang for nobody.
            if !granted() {
                return None;
            }
        }
        Some(Arc::new(Permit(Arc::clone(self))))
    }

    /// Calls the dispatcher.
    pub(super) fn wake(&self) {
        self.signal.notify_one();
    }

    /// Returns when the dispatcher is called.
    pub(super) async fn called(&self) {
        self.signal.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        if self.0.wanted.swap(false, Ordering::SeqCst) {
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_permit_is_free_with_its_last_clone_and_rings_only_if_one_was_missed() {
        let permits = Permits::new(2);
        let (one, two) = (permits.take().unwrap(), permits.take().unwrap());
        let thread = one.clone();
        drop(two);
        assert!(permits.called().now_or_never().is_none(), "nobody went without");
        let two = permits.take().unwrap();
        assert!(permits.take().is_none());
        drop(one);
        assert!(permits.take().is_none(), "a thread still holds it");
        drop(thread);
        assert!(permits.called().now_or_never().is_some());
        assert_eq!((permits.open_to(1), permits.open_to(0)), (2, 1));
        drop(two);
        assert!(permits.called().now_or_never().is_some(), "an earlier session's");
    }
}
