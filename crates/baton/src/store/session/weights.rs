//! What a report costs the store: a store that runs one call at a time is to be free again within milliseconds, so long
//! reports go in several calls.
//!
//! Messages that fail are written anew, one by one. How long their bodies are is noted when they are claimed, if they are
//! long, until all of the claim is settled; so is in how many spans they came, if many are parcels of their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::message::{Name, Outcome, Parcel, Run, Span};

/// What a settle may weigh. Only one message that weighs more by itself goes alone.
pub(super) const MOST_WEIGHT: usize = 1_000;
/// A run of messages that end as they are: it may be a part of a parcel, one of many.
const A_RUN: usize = 4;
/// A message that fails, beyond its body.
const FAILED: usize = 2;
/// Bytes that weigh as much as a follow-up.
const BYTES_A_UNIT: usize = 1_024;

/// A message of a call, however it ends.
const OF_A_CALL: usize = 12;
/// Of a claim with more spans a run that ends as it is weighs by them, unless all are short messages that came singly.
const FEW_SPANS: usize = 64;
/// The longest parcel of one message that is none of its own in the store.
const SHORT: usize = 512;

/// Claims with long bodies, many spans or messages of calls.
#[derive(Default)]
pub(super) struct Weights(Mutex<BTreeMap<(Name, u64), Heavy>>);

/// Such a claim.
struct Heavy {
    /// Messages that are not settled.
    left: u64,
    /// Bytes of the longest body.
    longest: usize,
    /// Spans and messages that it came with.
    spans: u64,
    messages: u64,
    /// Its messages of calls.
    calls: BTreeSet<u64>,
}

impl Weights {
    /// Notes what a claim has brought.
    pub(super) fn note(&self, queue: &Name, claim_no: u64, spans: &[(Span, Parcel)]) {
        let long = spans.iter().any(|(_, parcel)| parcel.bytes().len() > BYTES_A_UNIT * parcel.len() as usize);
        let many = spans.len() > FEW_SPANS && spans.iter().any(|(_, parcel)| parcel.bytes().len() > SHORT);
        let of_calls = spans.iter().filter(|(span, _)| span.role.is_some());
        let calls: BTreeSet<u64> = of_calls.map(|(span, _)| span.range.first).collect();
        if long || many || !calls.is_empty() {
            let bodies = spans.iter().flat_map(|(_, parcel)| parcel.bodies());
            let longest = bodies.map(|body| body.len()).max().unwrap_or_default();
            let messages = spans.iter().map(|(span, _)| u64::from(span.range.len)).sum();
            let heavy = Heavy { left: messages, longest, spans: spans.len() as u64, messages, calls };
            self.claims().insert((queue.clone(), claim_no), heavy);
        }
    }

    /// Forgets what has been settled.
    pub(super) fn settled(&self, run: &Run) {
        let mut claims = self.claims();
        if claims.is_empty() {
            return;
        }
        let claim = (run.queue.clone(), run.claim_no);
        if let Some(heavy) = claims.get_mut(&claim) {
            heavy.left = heavy.left.saturating_sub(u64::from(run.range.len));
            if heavy.left == 0 {
                claims.remove(&claim);
            }
        }
    }

    /// What a run weighs: each message that it moves by itself, and what it brings.
    pub(super) fn of(&self, run: &Run) -> usize {
        match &run.outcome {
            Outcome::Done { follow_ups, .. } => {
                self.spans_of(run) + follow_ups.len() + run.outcome.brings() / BYTES_A_UNIT
            }
            Outcome::Back => self.spans_of(run),
            Outcome::Retry { .. } | Outcome::Failed { .. } => {
                self.failed(run) * run.range.len as usize + OF_A_CALL * self.of_calls(run)
            }
        }
    }

    /// What a run weighs by the spans it is likely to be of.
    fn spans_of(&self, run: &Run) -> usize {
        let spans = self.heavy(run, |heavy| u64::from(run.range.len) * heavy.spans / heavy.messages.max(1));
        let spans = usize::try_from(spans.unwrap_or_default()).unwrap_or(usize::MAX);
        (A_RUN + OF_A_CALL * self.of_calls(run)).saturating_add(spans)
    }

    /// How many messages of a run are of calls.
    pub(super) fn of_calls(&self, run: &Run) -> usize {
        self.heavy(run, |heavy| heavy.calls.range(run.range.first..run.range.end()).count()).unwrap_or_default()
    }

    /// What each message of a run weighs at most.
    pub(super) fn of_each(&self, run: &Run) -> usize {
        self.failed(run) + if self.of_calls(run) > 0 { OF_A_CALL } else { 0 }
    }

    /// What a message weighs that fails, whether it is of a call or not.
    fn failed(&self, run: &Run) -> usize {
        let (Outcome::Retry { error, .. } | Outcome::Failed { error }) = &run.outcome else { return 1 };
        FAILED + (self.heavy(run, |heavy| heavy.longest).unwrap_or_default() + error.len()) / BYTES_A_UNIT
    }

    /// Something of the claim that a run is of, if that was noted.
    fn heavy<T>(&self, run: &Run, of: impl Fn(&Heavy) -> T) -> Option<T> {
        let claims = self.claims();
        if claims.is_empty() { None } else { claims.get(&(run.queue.clone(), run.claim_no)).map(of) }
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<(Name, u64), Heavy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Range};

    /// What it weighs to report a whole claim of so many messages as done, which came singly with bodies of these lengths in
    /// turn.
    fn of_singles(count: u32, lengths: &[usize]) -> usize {
        let parcel =
            |length: usize| Parcel::single(Body::new(format!("\"{}\"", "x".repeat(length)).as_bytes()).unwrap());
        let spans: Vec<_> = (1..=u64::from(count))
            .zip(lengths.iter().cycle())
            .map(|(id, length)| (Span::fresh(id, 1, 0), parcel(*length)))
            .collect();
        let (weights, queue) = (Weights::default(), Name::new("q").unwrap());
        weights.note(&queue, 1, &spans);
        let run = Run { claim_no: 1, queue, range: Range { first: 1, len: count }, outcome: Outcome::DONE };
        let weight = weights.of(&run);
        weights.settled(&run);
        assert!(weights.claims().is_empty());
        weight
    }

    #[test]
    fn messages_of_calls_weigh_one_by_one() {
        let span = |id: u64| {
            let part = id.is_multiple_of(2).then_some(crate::message::CallRole::First);
            (Span { role: part, ..Span::fresh(id, 1, 0) }, Parcel::single(Body::new(b"1").unwrap()))
        };
        let (weights, queue) = (Weights::default(), Name::new("q").unwrap());
        weights.note(&queue, 1, &(1..=40).map(span).collect::<Vec<_>>());
        let run = |first, len, outcome| Run { claim_no: 1, queue: queue.clone(), range: Range { first, len }, outcome };
        assert_eq!(weights.of(&run(1, 1, Outcome::DONE)), A_RUN + 1);
        assert_eq!(weights.of(&run(2, 1, Outcome::DONE)), A_RUN + 1 + OF_A_CALL);
        assert_eq!(weights.of(&run(1, 40, Outcome::Back)), A_RUN + 40 + 20 * OF_A_CALL);
        let dead = Outcome::Failed { error: "no".to_owned() };
        assert_eq!(weights.of(&run(1, 40, dead)), 40 * FAILED + 20 * OF_A_CALL);
    }

    #[test]
    fn what_is_done_weighs_by_its_spans_unless_all_are_short() {
        assert_eq!(of_singles(1_000, &[10]), A_RUN);
        assert_eq!(of_singles(1_000, &[10, 600]), A_RUN + 1_000);
        assert_eq!(of_singles(1_000, &[5_000]), A_RUN + 1_000);
        assert_eq!(of_singles(3, &[600]), A_RUN);
        assert_eq!(of_singles(3, &[5_000]), A_RUN + 3);
    }
}
