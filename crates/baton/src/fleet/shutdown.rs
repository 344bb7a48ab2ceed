//! Asking a node to stop.

use std::sync::Arc;

use crate::store::{Stop, notice::Notice};

/// A handle that stops nodes; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Shutdown(Arc<Notice<Option<Stop>>>);

impl Shutdown {
    /// A handle that has stopped nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nodes finish what runs, hand the rest back and leave.
    pub fn graceful(&self) {
        self.0.change(|stop| stop.is_none() && stop.replace(Stop::Graceful).is_none());
    }

    /// Nodes hand everything back and leave at once.
    pub fn now(&self) {
        self.0.set(Some(Stop::Now));
    }

    /// How nodes are asked to stop, if they are.
    #[must_use]
    pub fn asked(&self) -> Option<Stop> {
        self.0.get()
    }

    /// Returns when nodes are asked to stop in any way, or at once if they have been.
    pub async fn any(&self) {
        self.0.until(Option::is_some).await;
    }

    /// Returns when nodes are asked to stop at once.
    pub async fn at_once(&self) {
        self.0.until(|stop| *stop == Some(Stop::Now)).await;
    }
}
