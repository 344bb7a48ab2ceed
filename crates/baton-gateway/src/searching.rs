//! A subset sum that is searched in the thread of its connection: a source of a stream.
//!
//! It computes for a slice of time, and then all other work of the thread has its turn. It searches as fast as its
//! reader reads, and ends with its reader. It needs no store: it goes on while the store is away, and a cut ends it for
//! good.

use axum::body::Bytes;
use baton::builtin::subset_sum::Interleaved;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    forms::Form,
    stream::{Part, Source},
};

/// See the module.
pub(crate) struct Searching {
    pub(crate) search: Interleaved,
    pub(crate) form: Form,
    /// Its right to compute.
    pub(crate) _turn: OwnedSemaphorePermit,
}

impl Source for Searching {
    async fn next(&mut self) -> Part {
        match self.search.next().await {
            Some(matches) => {
                let matches = matches.iter().map(|it| serde_json::to_vec(it).unwrap_or_default());
                Part::Further(matches.flat_map(|json| self.form.unnumbered("match", &json)).collect())
            }
            None => {
                let summary = serde_json::to_vec(&self.search.summary()).unwrap_or_default();
                Part::Last(self.form.unnumbered("end", &summary))
            }
        }
    }

    async fn silence(&mut self) -> Bytes {
        self.form.breath()
    }
}
