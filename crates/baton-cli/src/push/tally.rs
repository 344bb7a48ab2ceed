//! What is stored so far, and how that is told when a push ends early.

use baton::message::Name;
use serde::Serialize;

use super::{
    input::{Labels, Spot},
    progress::Progress,
    reader::Chunk,
};
use crate::output::plural;

/// What a push did.
#[derive(Debug, Serialize)]
pub(crate) struct Receipt {
    pub(crate) pushed: u64,
    /// Lines that had been pushed under this key before.
    pub(crate) duplicates: u64,
    pub(crate) first_id: Option<u64>,
    pub(crate) last_id: Option<u64>,
    pub(crate) queue: String,
}

/// Counts what the store has taken.
pub(super) struct Tally {
    receipt: Receipt,
    progress: Progress,
    /// The last line stored.
    last: Option<Spot>,
}

impl Tally {
    pub(super) fn new(queue: Name, progress: Progress) -> Self {
        let receipt = Receipt { pushed: 0, duplicates: 0, first_id: None, last_id: None, queue: queue.to_string() };
        Self { receipt, progress, last: None }
    }

    /// The store has this chunk, with its first id if that is known.
    pub(super) fn stored(&mut self, chunk: &Chunk, first_id: Option<u64>) {
        let count = u64::from(chunk.parcel.len());
        let receipt = &mut self.receipt;
        receipt.pushed += count;
        if let Some(first) = first_id {
            let last = first + count - 1;
            receipt.first_id = Some(receipt.first_id.map_or(first, |known| known.min(first)));
            receipt.last_id = Some(receipt.last_id.map_or(last, |known| known.max(last)));
        }
        self.last = self.last.max(Some(chunk.last));
        self.progress.advance(chunk.bytes, receipt.pushed);
    }

    /// The store had these lines before.
    pub(super) fn passed_over(&mut self, lines: u64) {
        self.receipt.duplicates += lines;
    }

    /// Everything was taken.
    pub(super) fn finish(self) -> Receipt {
        self.progress.end();
        self.receipt
    }

    /// How to go on without a key after a push that ends early.
    pub(super) const fn again(&self) -> &'static str {
        if self.receipt.pushed == 0 { "push again" } else { "push the rest" }
    }

    /// What is stored, what is not, and what is not known, of a push that ends early.
    pub(super) fn told(&self, labels: &Labels, refused: &[Chunk], unknown: &[Chunk]) -> String {
        self.progress.end();
        let Receipt { pushed, duplicates, .. } = &self.receipt;
        let mut told = match (pushed, self.last) {
            (0, _) if !unknown.is_empty() => "no line is surely stored".to_owned(),
            (0, _) => "nothing was stored".to_owned(),
            (1, Some(last)) => format!("1 line is stored ({})", labels.at(last)),
            (count, Some(last)) => format!("{count} lines are stored, the last is {}", labels.at(last)),
            (count, None) => format!("{count} line{} stored", plural(*count)),
        };
        if *duplicates > 0 {
            told += &format!(" beside the {duplicates} pushed before");
        }
        if !unknown.is_empty() {
            told += &format!(", {} may or may not be stored", spans(labels, unknown.iter()));
        }
        // Lines behind the last one stored go without saying.
        let mut holes = refused.iter().filter(|chunk| Some(chunk.first) < self.last).peekable();
        if holes.peek().is_some() {
            told += &format!(", {} are not", spans(labels, holes));
        }
        told
    }
}

/// The lines of chunks, those that follow each other as one span.
fn spans<'a>(labels: &Labels, chunks: impl Iterator<Item = &'a Chunk>) -> String {
    let mut chunks: Vec<&Chunk> = chunks.collect();
    chunks.sort_unstable_by_key(|chunk| chunk.number);
    let runs = chunks.chunk_by(|one, next| one.number + 1 == next.number && one.last.input == next.first.input);
    let ends = runs.filter_map(|run| Some((run.first()?.first, run.last()?.last)));
    ends.map(|(first, last)| labels.between(first, last)).collect::<Vec<_>>().join(" and ")
}
