//! What a node's sources are about, for whoever waits until nothing more happens by itself.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::message::Name;

/// Batches on their way from sources to the store, and sources that failed; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stillness(Arc<State>);

#[derive(Debug, Default)]
struct State {
    unstored: AtomicUsize,
    failed: Mutex<BTreeSet<Name>>,
}

impl Stillness {
    #[cfg(feature = "testing")]
    /// How many batches were pulled and are not stored. A stream counts its batch before it is pulled again.
    pub(crate) fn unstored(&self) -> usize {
        self.0.unstored.load(Ordering::SeqCst)
    }

    #[cfg(feature = "testing")]
    /// Sources whose last attempt here failed.
    pub(crate) fn failed(&self) -> BTreeSet<Name> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how the attempt at a source that begins or ends now stands.
    pub(super) fn note(&self, source: &Name, failed: bool) {
        let mut sources = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed {
            sources.insert(source.clone());
        } else {
            sources.remove(source);
        }
    }

    /// Counts a batch until what it gives is dropped.
    pub(super) fn pulled(&self) -> Unstored {
        self.0.unstored.fetch_add(1, Ordering::SeqCst);
        Unstored(self.clone())
    }
}

/// A batch that is not stored.
#[derive(Debug)]
pub(super) struct Unstored(Stillness);

impl Drop for Unstored {
    fn drop(&mut self) {
        self.0.0.unstored.fetch_sub(1, Ordering::SeqCst);
    }
}
