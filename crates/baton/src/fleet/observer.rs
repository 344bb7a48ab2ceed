//! A seam for whoever wants to see what a node does: soaks, examples, tests.

use bytes::Bytes;

use super::SourceError;
use crate::{
    message::{Name, Range},
    store::{Push, Pushed},
};

/// Is told what a node has done, as it does it. Its methods are called between messages and should be quick.
pub trait Observer: Send + Sync + 'static {
    /// Handlers of these messages have run; `first_body` is the body of the first.
    fn ran(&self, queue: &Name, range: Range, first_body: &Bytes) {
        let _unused = (queue, range, first_body);
    }

    /// What was told of by [`Observer::ran`] so far is about to be reported to the store.
    fn settling(&self) {}

    /// A push was acknowledged.
    fn pushed(&self, push: &Push, pushed: &Pushed) {
        let _unused = (push, pushed);
    }

    /// A source this node ran cannot go on; if that is [for good](SourceError::is_for_good), this node leaves it alone
    /// from now on.
    fn source_failed(&self, source: &Name, error: &SourceError) {
        let _unused = (source, error);
    }

    /// Something happened that a person may want to know, in one line.
    fn told(&self, line: &str) {
        let _unused = line;
    }
}

/// Sees nothing.
pub(super) struct Nobody;

impl Observer for Nobody {}
