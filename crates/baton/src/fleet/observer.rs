//! A seam for whoever wants to see what a node does: logs, dashboards, soaks, tests.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;

use super::{event::Event, traces};
use crate::{
    message::{Name, Range},
    panics,
};

/// Is told what a node has done, as it does it. Its methods are called between messages and should be quick. A panic in
/// one of them changes nothing for the node and its messages; the first is told as [`Event::ObserverPanicked`].
pub trait Observer: Send + Sync + 'static {
    /// Handlers of these messages have run; `first_body` is the body of the first. No [`Event`], since there may be
    /// millions in a second.
    fn ran(&self, queue: &Name, range: Range, first_body: &Bytes) {
        let _unused = (queue, range, first_body);
    }

    /// What was told of by [`Observer::ran`] so far is about to be reported to the store.
    fn settling(&self) {}

    /// Something happened.
    fn on_event(&self, event: &Event) {
        let _unused = event;
    }
}

/// Sees nothing: what its node has to tell is in the events of `tracing`.
pub(super) struct Nobody;

impl Observer for Nobody {}

/// An observer whose panics stay with it.
pub(super) struct Guarded {
    observer: Arc<dyn Observer>,
    /// Whether a panic was told.
    told: AtomicBool,
}

impl Guarded {
    pub(super) fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, told: AtomicBool::new(false) }
    }

    fn guard(&self, call: impl Fn(&dyn Observer)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(&*self.observer))) else { return };
        let error = panics::text(panic);
        if !self.told.swap(true, Ordering::Relaxed) {
            tell(self, &Event::ObserverPanicked { error });
        }
    }
}

impl Observer for Guarded {
    fn ran(&self, queue: &Name, range: Range, first_body: &Bytes) {
        self.guard(|observer| observer.ran(queue, range, first_body));
    }

    fn settling(&self) {
        self.guard(|observer| observer.settling());
    }

    fn on_event(&self, event: &Event) {
        self.guard(|observer| observer.on_event(event));
    }
}

/// Tells an observer, and writes an event of `tracing`: the only place where either is done.
pub(super) fn tell(observer: &dyn Observer, event: &Event) {
    traces::write(event);
    observer.on_event(event);
}
