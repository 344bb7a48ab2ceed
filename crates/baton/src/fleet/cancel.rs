//! Asking a node to stop.

use std::sync::Arc;

use tokio::sync::watch;

use crate::store::Stop;

/// A handle that stops nodes; clones share it.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<Option<Stop>>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Cancel {
    /// A handle that has stopped nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nodes finish what runs, hand the rest back and leave.
    pub fn drain(&self) {
        self.0.send_if_modified(|stop| stop.is_none() && stop.replace(Stop::Drain).is_none());
    }

    /// Nodes hand everything back and leave at once.
    pub fn now(&self) {
        self.0.send_replace(Some(Stop::Now));
    }

    /// How nodes are asked to stop, if they are.
    #[must_use]
    pub fn asked(&self) -> Option<Stop> {
        *self.0.borrow()
    }

    /// Returns when nodes are asked to stop in any way, or at once if they have been.
    pub async fn any(&self) {
        self.0.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Returns when nodes are asked to stop at once.
    pub async fn at_once(&self) {
        self.0.subscribe().wait_for(|stop| *stop == Some(Stop::Now)).await.ok();
    }
}
