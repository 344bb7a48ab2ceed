//! Message ids, runs of them, and the checksum the books are kept in.

use std::{fmt, num::ParseIntError, str::FromStr};

use serde::Serialize;

/// A message's number within its queue: consecutive from 1, allotted by the store, below 2⁵³.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MessageId(pub u64);

impl MessageId {
    /// The largest id: every store and every JSON reader holds it exactly.
    pub const MAX: Self = Self((1 << 53) - 1);
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for MessageId {
    type Err = ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A run of consecutive ids; never empty in a well-formed request.
///
/// Its ends are plain numbers, as everything is that begins a run (`first`): they are there to be counted with, and every
/// sum would have to take a [`MessageId`] apart and put it together again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The number of the first id.
    pub first: u64,
    /// How many ids.
    pub len: u32,
}

impl Range {
    /// The run of this id alone.
    #[must_use]
    pub const fn one(id: MessageId) -> Self {
        Self { first: id.0, len: 1 }
    }

    /// The number after that of the last id.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.first.saturating_add(self.len as u64)
    }

    /// Each id of it, in order.
    pub fn ids(self) -> impl Iterator<Item = MessageId> {
        (self.first..self.end()).map(MessageId)
    }

    /// The ids both have.
    #[must_use]
    pub fn overlap(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let end = self.end().min(other.end());
        let len = u32::try_from(end.checked_sub(first)?).ok()?;
        (len > 0).then_some(Self { first, len })
    }
}

/// A choice among consecutive ids, one bit each, lowest bit first: what a worker knows of a parcel that is half done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    first: u64,
    bits: Vec<u64>,
}

impl Mask {
    /// A mask over ids from `first` on with nothing chosen.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self { first, bits: Vec::new() }
    }

    /// Chooses `id`. Ids below the first are outside the mask and change nothing.
    pub fn set(&mut self, id: u64) {
        let Some(bit) = id.checked_sub(self.first).and_then(|bit| usize::try_from(bit).ok()) else { return };
        let word = bit / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        if let Some(bits) = self.bits.get_mut(word) {
            *bits |= 1 << (bit % 64);
        }
    }

    /// The chosen ids as the fewest runs, in order.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for (word, bits) in (0_u64..).zip(&self.bits) {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let id = self.first + word * 64 + bit;
                match ranges.last_mut() {
                    Some(last) if last.end() == id => last.len += 1,
                    _ => ranges.push(Range { first: id, len: 1 }),
                }
            }
        }
        ranges
    }
}

/// (Σ id) mod 1,000,003: a count alone cannot tell one id done twice from two ids done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IdSum(u64);

impl IdSum {
    /// The modulus: a prime, small enough that every step is exact in a double too.
    pub const MODULUS: u64 = 1_000_003;

    /// The sum with this value, as read from a store.
    #[must_use]
    pub(crate) const fn from_u64(value: u64) -> Self {
        Self(value % Self::MODULUS)
    }

    /// The sum of all ids of a run.
    #[must_use]
    pub const fn of(range: Range) -> Self {
        let len = range.len as u64;
        let steps = len * len.saturating_sub(1) / 2;
        Self((len % Self::MODULUS * (range.first % Self::MODULUS) + steps) % Self::MODULUS)
    }

    /// The sum of the ids 1 to `last`.
    #[must_use]
    pub const fn up_to(last: u64) -> Self {
        let (even, odd) = if last.is_multiple_of(2) { (last / 2, last + 1) } else { (last.div_ceil(2), last) };
        Self(even % Self::MODULUS * (odd % Self::MODULUS) % Self::MODULUS)
    }

    /// Both sums together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0) % Self::MODULUS)
    }

    /// The value, below [`IdSum::MODULUS`].
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlap_of_neighbours_is_nothing() {
        let a = Range { first: 1, len: 3 };
        assert_eq!(a.overlap(Range { first: 4, len: 2 }), None);
        assert_eq!(a.overlap(Range { first: 3, len: 9 }), Some(Range { first: 3, len: 1 }));
    }

    #[test]
    fn masks_become_the_fewest_ranges() {
        let mut mask = Mask::new(10);
        for id in [9, 10, 11, 13, 73, 74, 200] {
            mask.set(id);
        }
        let want = [(10, 2), (13, 1), (73, 2), (200, 1)].map(|(first, len)| Range { first, len });
        assert_eq!(mask.ranges(), want);
    }

    proptest! {
        #[test]
        fn sums_agree_with_counting(first in 1_u64..(1 << 53) - 70_000, len in 1_u32..5_000) {
            let range = Range { first, len };
            let slow = (first..range.end()).fold(0, |sum, id| (sum + id) % IdSum::MODULUS);
            prop_assert_eq!(IdSum::of(range).value(), slow);
            let both = IdSum::up_to(first - 1).plus(IdSum::of(range));
            prop_assert_eq!(both, IdSum::up_to(range.end() - 1));
        }
    }
}
