//! The way through a stretch of sums: what both halves have in it.
//!
//! Window by window the sums of the left half are put into a sieve, and those of the right half looked up in it. The few
//! that pass are a sieve for the left ones in turn; only what passes that is compared, so a pair costs a few operations
//! on memory that stays in the cache. Memory is bounded whatever the numbers are: a window with too many left sums is
//! made smaller (a single sum has no more pairs than the short list has rows), and right ones are taken in bounded groups.

use std::{mem, sync::Arc};

use super::{
    half::{Half, Runs},
    number::Number,
    product::{Product, Spot},
    sieve::Sieve,
};

/// Left sums in a window: about as many are aimed at, and twice as many are too many.
const WINDOW: u64 = 1 << 16;
/// Right sums that pass before they are compared.
const GROUP: usize = 1 << 15;
/// Right sums looked up in one step.
const STEP: usize = 1 << 17;
/// Matches given in one step.
const BATCH: usize = 1 << 12;

/// What has been found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Subsets, as bits; none if they are only counted.
    pub(super) subsets: Vec<u64>,
    /// How many there were, the empty one included if it has the sum.
    pub(super) count: u128,
}

/// Both halves, told in such a way that a match is a sum they have in common.
#[derive(Debug)]
pub(super) struct Halves<N> {
    pub(super) left: Half<N>,
    pub(super) right: Half<N>,
}

/// One way through some sums, a bounded step at a time.
pub(super) trait Steps: Send {
    /// Goes a step on, at most about a millisecond; false at the end.
    fn step(&mut self, found: &mut Found) -> bool;
}

/// A way through the sums from `at` up to `end`.
#[derive(Debug)]
pub(super) struct Walk<N> {
    halves: Arc<Halves<N>>,
    counting: bool,
    at: N,
    end: N,
    /// How wide the next window is to be.
    width: N,
    left: Runs,
    right: Runs,
    /// What the left half has in the window.
    there: Sieve,
    /// What passed, of either half.
    passed: Sieve,
    /// The row of the right half that is looked at next; none left if the window is done.
    row: usize,
    lefts: Vec<Spot<N>>,
    rights: Vec<Spot<N>>,
    product: Product,
}

impl<N: Number> Walk<N> {
    /// Through the sums from `at` to before `end`; matches are given or only counted.
    pub(super) fn new(halves: &Arc<Halves<N>>, at: N, end: N, counting: bool) -> Self {
        let Halves { left, right } = &**halves;
        Self {
            halves: Arc::clone(halves),
            counting,
            at,
            end,
            width: end - at,
            left: Runs::at(left, at),
            right: Runs::at(right, at),
            there: Sieve::new(left.pairs()),
            passed: Sieve::new(left.pairs()),
            row: right.short.len(),
            lefts: Vec::new(),
            rights: Vec::new(),
            product: Product::default(),
        }
    }

    /// Bytes one takes at most.
    pub(super) fn bytes(halves: &Halves<N>) -> usize {
        let spots = GROUP + STEP + 2 * WINDOW as usize;
        Runs::bytes(&halves.left) + Runs::bytes(&halves.right) + 2 * Sieve::bytes() + spots * size_of::<Spot<N>>()
    }

    /// Takes the next window, and sieves its left sums.
    fn open(&mut self) {
        let Halves { left, right } = &*self.halves;
        let (mut to, one) = (self.at + self.width.min(self.end - self.at), N::of(1));
        let mut pairs = self.left.advance(left, to);
        while pairs > 2 * WINDOW && to - self.at > one {
            to = self.at + (to - self.at).halved();
            pairs = self.left.shrink(left, to);
        }
        let others = self.right.advance(right, to);
        // The next window is as wide as this one should have been, at most four times as wide as it was.
        let aim = i128::from(WINDOW) * 16 / i128::from(pairs.max(1));
        let width = ((to - self.at).wide() * aim.min(64) / 16).max(1);
        (self.at, self.width) = (to, N::of(width.min((self.end - to).wide().max(1))));
        if pairs == 0 || others == 0 {
            return;
        }
        self.there.clear();
        for (_, row, _, run) in self.left.rows(left, 0) {
            run.iter().for_each(|sum| self.there.put(row + *sum));
        }
        self.row = 0;
    }

    /// Looks up right sums of the window: those that pass are kept.
    fn look_up(&mut self) {
        let right = &self.halves.right;
        let mut seen = 0;
        for (row, base, first, run) in self.right.rows(right, self.row) {
            self.row += 1;
            seen += run.len();
            for (place, sum) in (first..).zip(run) {
                if self.there.has(base + *sum) {
                    self.rights.push(Spot { sum: base + *sum, short: row, long: place });
                }
            }
            if seen >= STEP || self.rights.len() >= GROUP {
                return;
            }
        }
    }

    /// Compares what passed with the left sums of the window.
    fn compare(&mut self, found: &mut Found) {
        let mut rights = mem::take(&mut self.rights);
        let mut lefts = mem::take(&mut self.lefts);
        self.passed.clear();
        rights.iter().for_each(|spot| self.passed.put(spot.sum));
        for (row, base, first, run) in self.left.rows(&self.halves.left, 0) {
            for (place, sum) in (first..).zip(run) {
                if self.passed.has(base + *sum) {
                    lefts.push(Spot { sum: base + *sum, short: row, long: place });
                }
            }
        }
        self.passed.clear();
        lefts.iter().for_each(|spot| self.passed.put(spot.sum));
        rights.retain(|spot| self.passed.has(spot.sum));
        lefts.sort_unstable_by_key(|spot| spot.sum);
        rights.sort_unstable_by_key(|spot| spot.sum);
        if self.counting {
            found.count += Product::count(&self.halves, &lefts, &rights);
        } else {
            self.product.begin(&lefts, &rights);
        }
        lefts.clear();
        rights.clear();
        (self.lefts, self.rights) = (lefts, rights);
    }
}

impl<N: Number> Steps for Walk<N> {
    fn step(&mut self, found: &mut Found) -> bool {
        if self.product.give(&self.halves, BATCH, found) {
            return true;
        }
        let rows = self.halves.right.short.len();
        if self.row < rows {
            self.look_up();
            if self.rights.len() >= GROUP || (self.row >= rows && !self.rights.is_empty()) {
                self.compare(found);
            }
            return true;
        }
        if self.at >= self.end {
            return false;
        }
        self.open();
        true
    }
}
