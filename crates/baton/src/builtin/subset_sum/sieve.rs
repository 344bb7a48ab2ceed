//! Which sums cannot be among others: a bit for each, by their scattered bits.

use super::number::Number;

/// Bits of a sieve at most: 256 KiB, which a core's cache holds beside the sums.
const MOST: u64 = 1 << 21;
/// Bits for each sum: one in sixteen passes by chance.
const EACH: u64 = 16;

/// A set of sums that never denies one it has.
#[derive(Debug)]
pub(super) struct Sieve {
    words: Vec<u64>,
    /// How many of a sum's scattered bits are not used.
    unused: u32,
}

impl Sieve {
    /// An empty one for so many sums.
    pub(super) fn new(sums: u64) -> Self {
        let bits = sums.saturating_mul(EACH).clamp(64, MOST).next_power_of_two();
        let words = vec![0; usize::try_from(bits / 64).unwrap_or(1)];
        Self { words, unused: 64 - bits.trailing_zeros() }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn put<N: Number>(&mut self, sum: N) {
        let bit = sum.scattered() >> self.unused;
        if let Some(word) = usize::try_from(bit / 64).ok().and_then(|place| self.words.get_mut(place)) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether it may have this sum.
    pub(super) fn has<N: Number>(&self, sum: N) -> bool {
        let bit = sum.scattered() >> self.unused;
        let word = usize::try_from(bit / 64).ok().and_then(|place| self.words.get(place));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Bytes one takes at most.
    pub(super) const fn bytes() -> usize {
        MOST as usize / 8
    }
}
