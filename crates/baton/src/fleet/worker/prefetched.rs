//! Messages claimed and not begun, in the order they came.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::time::Instant;

use crate::message::{CALL, CallId, CallRole, MessageId, Name, Parcel, Range, Span};

/// What a worker has prefetched.
#[derive(Default)]
pub(super) struct Prefetched {
    spans: VecDeque<Assigned>,
    count: usize,
}

/// Messages of one span that go together.
#[derive(Clone)]
pub(super) struct Assigned {
    pub(super) claim_no: u64,
    pub(super) span: Span,
    pub(super) parcel: Parcel,
    /// Which of the span: those before were begun or are others'.
    pub(super) from: u32,
    pub(super) to: u32,
    /// When it was claimed.
    pub(super) since: Instant,
}

impl Assigned {
    pub(super) const fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// Its first message.
    pub(super) const fn id(&self) -> MessageId {
        MessageId(self.range().first)
    }

    /// The name of its first message.
    pub(super) fn name(&self, queue: &Name) -> CallId {
        CallId { queue: queue.clone(), id: self.id(), born: Some(self.span.born) }
    }

    /// The call that its message is of, if it is.
    pub(super) fn call(&self, queue: &Name) -> Option<CallId> {
        match self.span.role? {
            CallRole::First => Some(self.name(queue)),
            CallRole::Joined => {
                let header = self.parcel.headers(self.from).get(CALL)?;
                std::str::from_utf8(&header).ok()?.parse().ok()
            }
        }
    }

    /// Its messages.
    pub(super) const fn range(&self) -> Range {
        Range { first: self.span.range.first + self.from as u64, len: self.to - self.from }
    }
}

impl Prefetched {
    /// How many messages it holds.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, claim_no: u64, spans: Vec<(Span, Parcel)>, since: Instant) {
        for (span, parcel) in spans {
            self.count += span.range.len as usize;
            let assigned = Assigned { claim_no, span, parcel, from: 0, to: span.range.len, since };
            // A suspect that waits here while this process is killed again would be taken for what killed it.
            if span.is_suspect() { self.spans.push_front(assigned) } else { self.spans.push_back(assigned) }
        }
    }

    /// Up to `most` of the next messages.
    pub(super) fn take(&mut self, most: u32) -> Option<Assigned> {
        let front = self.spans.front_mut()?;
        let assigned = if front.to - front.from <= most {
            self.spans.pop_front()?
        } else {
            let assigned = Assigned { to: front.from + most, ..front.clone() };
            front.from = assigned.to;
            assigned
        };
        self.count -= assigned.len();
        Some(assigned)
    }

    /// Takes messages back that were not begun after all: they are the next, but for a suspect.
    pub(super) fn put_back(&mut self, assigned: Assigned) {
        if assigned.len() > 0 {
            self.count += assigned.len();
            let at = usize::from(self.begins_with_suspect());
            self.spans.insert(at, assigned);
        }
    }

    /// Whether the next message is a suspect.
    pub(super) fn begins_with_suspect(&self) -> bool {
        self.spans.front().is_some_and(|front| front.span.is_suspect())
    }

    /// When the next message was claimed.
    pub(super) fn since(&self) -> Option<Instant> {
        self.spans.front().map(|front| front.since)
    }

    /// Takes out those of calls of which this is true.
    pub(super) fn take_out(&mut self, is_wanted: impl Fn(&Assigned) -> bool) -> Vec<(u64, Range)> {
        let mut taken = Vec::new();
        self.spans.retain(|assigned| {
            let stays = assigned.span.role.is_none() || !is_wanted(assigned);
            if !stays {
                taken.push((assigned.claim_no, assigned.range()));
            }
            stays
        });
        self.count -= taken.iter().map(|(_, range)| range.len as usize).sum::<usize>();
        taken
    }

    /// Takes out what was claimed at this time or before; all without a time.
    pub(super) fn drain(&mut self, upto: Option<Instant>) -> impl Iterator<Item = (u64, Range)> + '_ {
        std::iter::from_fn(move || {
            self.spans.front().filter(|front| upto.is_none_or(|upto| front.since <= upto))?;
            let front = self.spans.pop_front()?;
            self.count -= front.len();
            Some((front.claim_no, front.range()))
        })
    }
}

/// How far a assigned that is being run has come, so that what is not begun can be taken from under a handler that blocks.
#[derive(Default)]
pub(super) struct Position(AtomicU32);

/// Where a position stands that was taken away; far from any message and from the end of numbers.
const TAKEN_AWAY: u32 = u32::MAX / 2;

impl Position {
    /// Begins at this message of the span. Only under the buffer's lock, as [`Position::take_away`].
    pub(super) fn set(&self, from: u32) {
        self.0.store(from, Ordering::Relaxed);
    }

    /// The message to begin with now: behind the end of the assigned if there is none, or it was taken away.
    pub(super) fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Where it stands.
    pub(super) fn at(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends it; the first message that is not begun and now never will be.
    pub(super) fn take_away(&self) -> u32 {
        self.0.swap(TAKEN_AWAY, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::message::{Body, ParcelBuilder};

    #[test]
    fn messages_come_in_order_and_the_rest_can_go_back() {
        let mut builder = ParcelBuilder::default();
        for body in ["a", "b", "c", "d"] {
            builder.add(Body::new(body.as_bytes()).unwrap()).unwrap();
        }
        let (mut prefetched, early) = (Prefetched::default(), Instant::now());
        let late = early + Duration::from_millis(1);
        prefetched.add(4, vec![(Span::fresh(7, 4, 99), builder.finish().unwrap())], early);
        prefetched.add(5, vec![(Span::fresh(11, 1, 99), Parcel::single(Body::new(b"e").unwrap()))], late);
        assert_eq!(prefetched.len(), 5);
        let first = prefetched.take(1).unwrap();
        assert_eq!((first.claim_no, first.range(), first.from), (4, Range { first: 7, len: 1 }, 0));
        let mut more = prefetched.take(2).unwrap();
        assert_eq!((more.range(), prefetched.len()), (Range { first: 8, len: 2 }, 2));
        more.from += 1;
        prefetched.put_back(more);
        assert_eq!(prefetched.take(16).unwrap().range(), Range { first: 9, len: 1 });
        assert_eq!(prefetched.since(), Some(early));
        assert_eq!(prefetched.drain(Some(early)).collect::<Vec<_>>(), [(4, Range { first: 10, len: 1 })]);
        assert_eq!((prefetched.len(), prefetched.since()), (1, Some(late)));
        assert_eq!(prefetched.drain(None).collect::<Vec<_>>(), [(5, Range { first: 11, len: 1 })]);
        assert!(prefetched.take(1).is_none());
    }

    #[test]
    fn a_suspect_goes_before_all_that_waits() {
        let mut prefetched = Prefetched::default();
        let one = || Parcel::single(Body::new(b"1").unwrap());
        let suspect = Span { crashes: 2, ..Span::fresh(3, 1, 99) };
        prefetched.add(4, vec![(Span::fresh(7, 1, 99), one())], Instant::now());
        prefetched.add(5, vec![(suspect, one()), (Span::fresh(8, 1, 99), one())], Instant::now());
        let order: Vec<u64> =
            std::iter::from_fn(|| prefetched.take(1)).map(|assigned| assigned.range().first).collect();
        assert_eq!(order, [3, 7, 8]);
    }

    #[test]
    fn a_message_taken_away_from_a_slot_is_not_begun() {
        let position = Position::default();
        position.set(3);
        assert_eq!((position.next(), position.at()), (3, 4));
        assert_eq!(position.take_away(), 4);
        assert!(position.next() > 1 << 20);
    }
}
