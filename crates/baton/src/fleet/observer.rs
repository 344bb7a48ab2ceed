//! A seam for whoever wants to see what a node does: logs, dashboards, soaks, tests.

use bytes::Bytes;

use super::{event::Event, traces};
use crate::message::{Name, Range};

/// Is told what a node has done, as it does it. Its methods are called between messages and should be quick.
pub trait Observer: Send + Sync + 'static {
    /// Handlers of these messages have run; `first_body` is the body of the first. No [`Event`], since there may be
    /// millions in a second.
    fn ran(&self, queue: &Name, range: Range, first_body: &Bytes) {
        let _unused = (queue, range, first_body);
    }

    /// What was told of by [`Observer::ran`] so far is about to be reported to the store.
    fn settling(&self) {}

    /// Something happened.
    fn told(&self, event: &Event) {
        let _unused = event;
    }
}

/// Sees nothing: what its node has to tell is in the events of `tracing`.
pub(super) struct Nobody;

impl Observer for Nobody {}

/// Tells an observer, and writes an event of `tracing`: the only place where either is done.
pub(super) fn tell(observer: &dyn Observer, event: &Event) {
    traces::write(event);
    observer.told(event);
}
