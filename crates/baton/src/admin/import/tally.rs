//! What is stored so far, and how that is told when an import ends early.

use serde::Serialize;

use super::{
    Account, ImportCause, ImportError,
    input::{Labels, Spot},
    reader::Chunk,
};
use crate::message::{MessageId, Name};

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// Messages stored.
    pub pushed: u64,
    /// Lines that had been pushed under this key before.
    pub duplicates: u64,
    /// The lowest id among them, if it is known.
    pub first_id: Option<MessageId>,
    /// The highest id among them, if it is known.
    pub last_id: Option<MessageId>,
    /// The queue.
    pub queue: Name,
}

/// What an import has stored so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Bytes of input.
    pub bytes: u64,
    /// Messages.
    pub messages: u64,
}

/// Counts what the store has taken.
pub(super) struct Tally<P> {
    receipt: Receipt,
    bytes: u64,
    progress: P,
    /// The last line stored.
    last: Option<Spot>,
}

impl<P: FnMut(Progress)> Tally<P> {
    pub(super) fn new(queue: Name, progress: P) -> Self {
        let receipt = Receipt { pushed: 0, duplicates: 0, first_id: None, last_id: None, queue };
        Self { receipt, bytes: 0, progress, last: None }
    }

    /// The store has this chunk, with its first id if that is known.
    pub(super) fn stored(&mut self, chunk: &Chunk, first: Option<u64>) {
        let count = u64::from(chunk.parcel.len());
        let receipt = &mut self.receipt;
        receipt.pushed += count;
        if let Some(first) = first {
            let (first, last) = (MessageId(first), MessageId(first + count - 1));
            receipt.first_id = Some(receipt.first_id.map_or(first, |known| known.min(first)));
            receipt.last_id = Some(receipt.last_id.map_or(last, |known| known.max(last)));
        }
        self.last = self.last.max(Some(chunk.last));
        self.bytes += chunk.bytes;
        (self.progress)(Progress { bytes: self.bytes, messages: receipt.pushed });
    }

    /// The store had these lines before.
    pub(super) fn passed_over(&mut self, lines: u64) {
        self.receipt.duplicates += lines;
    }

    /// How many messages are stored.
    pub(super) const fn pushed(&self) -> u64 {
        self.receipt.pushed
    }

    /// Everything was taken.
    pub(super) fn finish(self) -> Receipt {
        self.receipt
    }

    /// An import that ends early: what is stored, what is not, and what is not known.
    pub(super) fn broken_off(
        &self, cause: ImportCause, labels: &Labels, refused: &[Chunk], unknown: &[Chunk],
    ) -> ImportError {
        let holes = refused.iter().filter(|chunk| Some(chunk.first) < self.last);
        let account = Account {
            stored: self.receipt.pushed,
            duplicates: self.receipt.duplicates,
            last: self.last.map(|last| labels.at(last)),
            unknown: spans(labels, unknown.iter()),
            missing: spans(labels, holes),
        };
        ImportError { cause, account: Some(account) }
    }
}

/// The lines of chunks, those that follow each other as one span.
fn spans<'a>(labels: &Labels, chunks: impl Iterator<Item = &'a Chunk>) -> Vec<String> {
    let mut chunks: Vec<&Chunk> = chunks.collect();
    chunks.sort_unstable_by_key(|chunk| chunk.number);
    let runs = chunks.chunk_by(|one, next| one.number + 1 == next.number && one.last.input == next.first.input);
    let ends = runs.filter_map(|run| Some((run.first()?.first, run.last()?.last)));
    ends.map(|(first, last)| labels.between(first, last)).collect()
}
