//! Whom the handlers and sources of a drawn fleet tell what they do: the scene of a simulated one, or the journal of a
//! process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use baton::Message;

use super::{body::Body, scene::Scene, work::Begun};

/// One life of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) node: usize,
    pub(crate) life: u32,
}

/// Somebody who is told.
pub(crate) trait Witness: Send + Sync + 'static {
    /// A handler begins; its key is told by its context.
    fn begins(&self, begun: &Begun, message: &Message, key: &str, takes_ms: u64);
    /// A handler has come to its end.
    fn runs(&self, _begun: &Begun) {}
    /// A handler has ended in any way, or was dropped.
    fn ends(&self, begun: &Begun);
    /// A source is opened; a number that differs from opening to opening.
    fn opened(&self, source: usize, of: Life) -> u64;
    /// A source fails or panics.
    fn source_failed(&self, source: usize, of: Life, how: &'static str);
    /// A source is no longer open there.
    fn closed(&self, source: usize, of: Life);
    /// Whether nothing goes wrong any more and endless sources rest.
    fn winds_down(&self) -> bool;
}

/// Whether this is a message of this queue, by its own account too.
pub(crate) fn belongs(message: &Message, key: &str, queue: usize) -> bool {
    let body: Option<Body> = serde_json::from_slice(&message.body).ok();
    message.queue.as_str() == format!("q{queue}")
        && key.starts_with(&format!("q{queue}/{}@", message.id))
        && body.is_some_and(|body| body.queue == queue)
}

fn scene(scene: &Mutex<Scene>) -> MutexGuard<'_, Scene> {
    scene.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Witness for Mutex<Scene> {
    fn begins(&self, begun: &Begun, message: &Message, key: &str, takes_ms: u64) {
        scene(self).begin(begun, message, key, takes_ms);
    }

    fn ends(&self, begun: &Begun) {
        scene(self).end(begun);
    }

    fn opened(&self, source: usize, of: Life) -> u64 {
        scene(self).opened(source, of.node, of.life)
    }

    fn source_failed(&self, source: usize, of: Life, how: &'static str) {
        scene(self).source_failed(source, of.node, how);
    }

    fn closed(&self, source: usize, of: Life) {
        scene(self).closed(source, of.node, of.life);
    }

    fn winds_down(&self) -> bool {
        scene(self).winding_down
    }
}
