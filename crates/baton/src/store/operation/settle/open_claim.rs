//! A claim that is being settled: runs in the order of ids take one pass over its spans, in any other order one each.

use std::collections::VecDeque;

use crate::{
    message::{Name, Range, Span},
    store::engine::ClaimRecord,
};

/// The spans of a claim in the order of ids: those behind the last run, and what is left of those before.
pub(super) struct OpenClaim {
    no: u64,
    queue: Name,
    ahead: VecDeque<Span>,
    passed: Vec<Span>,
    changed: bool,
}

impl OpenClaim {
    pub(super) fn new(no: u64, ClaimRecord { queue, mut spans }: ClaimRecord) -> Self {
        spans.sort_unstable_by_key(|span| span.range.first);
        Self { no, queue, ahead: spans.into(), passed: Vec::new(), changed: false }
    }

    pub(super) fn is(&self, queue: &Name, no: u64) -> bool {
        self.no == no && self.queue == *queue
    }

    /// Takes these messages out; nothing, with nothing changed, if it does not hold all of them.
    pub(super) fn take_out(&mut self, range: Range) -> Option<Vec<Span>> {
        if self.passed.last().is_some_and(|span| span.range.end() > range.first) {
            self.ahead = self.passed.drain(..).chain(self.ahead.drain(..)).collect();
        }
        while self.ahead.front().is_some_and(|span| span.range.end() <= range.first) {
            self.passed.extend(self.ahead.pop_front());
        }
        let (mut count, mut past) = (0, range.first);
        for span in &self.ahead {
            if past >= range.end() || span.range.first > past {
                break;
            }
            (count, past) = (count + 1, span.range.end());
        }
        if past < range.end() {
            return None;
        }
        self.changed = true;
        let mut taken = Vec::with_capacity(count);
        let mut rest = None;
        for span in self.ahead.drain(..count) {
            let [before, behind] = span.without(range);
            self.passed.extend(before);
            rest = behind;
            taken.extend(span.range.overlap(range).map(|part| span.over(part)));
        }
        if let Some(rest) = rest {
            self.ahead.push_front(rest);
        }
        Some(taken)
    }

    /// What is to be written; nothing if nothing was taken out.
    pub(super) fn close(self) -> Option<(u64, ClaimRecord)> {
        let Self { no, queue, ahead, mut passed, changed } = self;
        passed.extend(ahead);
        changed.then_some((no, ClaimRecord { queue, spans: passed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> OpenClaim {
        let spans = [(21, 1), (1, 10), (11, 5)].map(|(first, size)| Span::fresh(first, size, 0));
        OpenClaim::new(1, ClaimRecord { queue: Name::new("q").unwrap(), spans: spans.to_vec() })
    }

    fn left(claim: OpenClaim) -> Vec<(u64, u32)> {
        let (_, record) = claim.close().unwrap();
        record.spans.iter().map(|span| (span.range.first, span.range.len)).collect()
    }

    #[test]
    fn runs_in_any_order_take_what_they_name() {
        let mut it = claim();
        assert_eq!(it.take_out(Range { first: 9, len: 4 }).unwrap().len(), 2);
        assert_eq!(it.take_out(Range { first: 3, len: 2 }).unwrap().len(), 1);
        assert_eq!(it.take_out(Range { first: 21, len: 1 }).unwrap().len(), 1);
        assert_eq!(it.take_out(Range { first: 1, len: 1 }).unwrap().len(), 1);
        assert_eq!(left(it), [(2, 1), (5, 4), (13, 3)]);
    }

    #[test]
    fn a_run_that_is_not_held_in_full_changes_nothing() {
        let mut it = claim();
        for (first, len) in [(9, 8), (16, 1), (20, 2), (22, 1)] {
            assert!(it.take_out(Range { first, len }).is_none());
        }
        assert!(it.close().is_none());
    }
}
