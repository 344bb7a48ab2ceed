//! Messages claimed and not begun, in the order they came.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::message::{Parcel, Piece, Range};

/// What a worker has in hand.
#[derive(Default)]
pub(super) struct Hand {
    pieces: VecDeque<InHand>,
    count: usize,
}

struct InHand {
    claim_no: u64,
    piece: Piece,
    parcel: Parcel,
    /// Messages of the piece that were begun. One that was begun to its end stays until the next is asked for.
    begun: u32,
}

/// A message to begin with.
pub(super) struct Next {
    pub(super) claim_no: u64,
    pub(super) id: u64,
    pub(super) born: u64,
    pub(super) attempts: u32,
    pub(super) losses: u32,
    pub(super) body: Bytes,
    /// Whether it is the first of its piece, and how many the piece has.
    pub(super) is_first: bool,
    pub(super) of: u32,
}

impl Hand {
    /// How many messages it holds.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, claim_no: u64, pieces: Vec<(Piece, Parcel)>) {
        for (piece, parcel) in pieces {
            self.count += piece.range.len as usize;
            self.pieces.push_back(InHand { claim_no, piece, parcel, begun: 0 });
        }
    }

    /// The next message, which counts as begun.
    pub(super) fn next(&mut self) -> Option<Next> {
        if self.pieces.front().is_some_and(|front| front.begun == front.piece.range.len) {
            self.pieces.pop_front();
        }
        let front = self.pieces.front_mut()?;
        let body = front.parcel.body(front.begun)?;
        let Piece { range, attempts, losses, born, .. } = front.piece;
        let next = Next {
            claim_no: front.claim_no,
            id: range.first + u64::from(front.begun),
            born,
            attempts,
            losses,
            body,
            is_first: front.begun == 0,
            of: range.len,
        };
        front.begun += 1;
        self.count -= 1;
        Some(next)
    }

    /// The body of the message that was given last.
    pub(super) fn last_body(&self) -> Bytes {
        let last = self.pieces.front().and_then(|front| front.parcel.body(front.begun.checked_sub(1)?));
        last.unwrap_or_default()
    }

    /// Empties it: the messages not begun, by claim.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, Range)> + '_ {
        self.count = 0;
        let rest = |held: InHand| {
            let Range { first, len } = held.piece.range;
            (held.claim_no, Range { first: first + u64::from(held.begun), len: len - held.begun })
        };
        self.pieces.drain(..).map(rest).filter(|(_, range)| range.len > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ParcelBuilder;

    #[test]
    fn messages_come_in_order_and_the_rest_can_go_back() {
        let mut builder = ParcelBuilder::default();
        for body in ["a", "b", "c"] {
            builder.add(body.as_bytes()).unwrap();
        }
        let mut hand = Hand::default();
        hand.add(4, vec![(Piece::fresh(7, 3, 99), builder.finish().unwrap())]);
        assert_eq!(hand.len(), 3);
        let first = hand.next().unwrap();
        assert_eq!((first.claim_no, first.id, &first.body[..], first.is_first, first.of), (4, 7, &b"a"[..], true, 3));
        assert!(!hand.next().unwrap().is_first);
        assert_eq!(hand.last_body(), "b");
        assert_eq!(hand.drain().collect::<Vec<_>>(), [(4, Range { first: 9, len: 1 })]);
        assert_eq!(hand.len(), 0);
        assert!(hand.next().is_none());
        hand.add(5, vec![(Piece::fresh(10, 1, 99), Parcel::single(b"d").unwrap())]);
        assert_eq!(hand.next().unwrap().id, 10);
        assert_eq!(hand.last_body(), "d");
        assert_eq!(hand.drain().count(), 0, "what was begun does not go back");
    }
}
