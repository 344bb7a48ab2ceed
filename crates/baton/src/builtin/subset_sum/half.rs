//! Half of the numbers: its sums as pairs of two short lists, a stretch of them at a time.
//!
//! The sums of half of 64 numbers are four thousand million, which nobody keeps. Two lists of its quarters have them as
//! pairs, and the pairs whose sum lies in a window are, for each sum of the short list, a run of the long one. A run
//! begins where that of the window before ended, so all pairs are met once, window by window, without a heap.

use std::ops::Range;

use super::{number::Number, sums::Sums};

/// Numbers in the long list at most: its sums stay in a core's cache.
const LONG: usize = 18;
/// Rows of the short list that are looked at where a rough answer will do.
const ROUGH: usize = 256;

/// The sums of half of the numbers.
#[derive(Debug)]
pub(super) struct Half<N> {
    pub(super) short: Sums<N>,
    pub(super) long: Sums<N>,
}

impl<N: Number> Half<N> {
    /// Of these numbers, at most 32, each with its bit; the empty subset has the sum `base`.
    pub(super) fn of(base: N, numbers: &[(N, u64)]) -> Self {
        let (short, long) = numbers.split_at(numbers.len().saturating_sub(LONG));
        Self { short: Sums::of(base, short), long: Sums::of(N::of(0), long) }
    }

    /// How many pairs there are.
    pub(super) const fn pairs(&self) -> u64 {
        self.short.len() as u64 * self.long.len() as u64
    }

    /// How many pairs have a sum less than this one, about.
    pub(super) fn roughly_below(&self, sum: N) -> u64 {
        let stride = self.short.len().div_ceil(ROUGH);
        let rows = self.short.iter().skip(stride / 2).step_by(stride);
        let (rows, below) = rows.fold((0, 0), |(rows, below), row| (rows + 1, below + self.long.below(sum - row)));
        u64::try_from(below as u128 * self.short.len() as u128 / u128::from(rows.max(1_u64))).unwrap_or(u64::MAX)
    }

    /// The least and the greatest sum.
    pub(super) fn ends(&self) -> Option<(N, N)> {
        let (short, long) = (self.short.ends()?, self.long.ends()?);
        Some((short.0 + long.0, short.1 + long.1))
    }
}

/// The pairs of a half whose sums lie in a window: a run of the long list for each sum of the short one.
#[derive(Debug)]
pub(super) struct Runs(Vec<Range<u32>>);

impl Runs {
    /// An empty window before this sum.
    pub(super) fn at<N: Number>(half: &Half<N>, sum: N) -> Self {
        let place = |row| u32::try_from(half.long.below(sum - row)).unwrap_or(u32::MAX);
        Self(half.short.iter().map(|row| (place(row), place(row))).map(|(start, end)| start..end).collect())
    }

    /// The window from the end of this one up to `to`; how many pairs it has.
    pub(super) fn advance<N: Number>(&mut self, half: &Half<N>, to: N) -> u64 {
        let mut pairs = 0;
        for (row, run) in half.short.iter().zip(&mut self.0) {
            *run = run.end..half.long.below_from(run.end, to - row);
            pairs += run.len() as u64;
        }
        pairs
    }

    /// The same window, but only up to `to`; how many pairs it has.
    pub(super) fn shrink<N: Number>(&mut self, half: &Half<N>, to: N) -> u64 {
        let mut pairs = 0;
        for (row, run) in half.short.iter().zip(&mut self.0) {
            run.end = half.long.below_from(run.start, to - row);
            pairs += run.len() as u64;
        }
        pairs
    }

    /// The runs of the window from a row of the short list on: row, its sum, first place in the long list, sums there.
    pub(super) fn rows<'a, N: Number>(
        &'a self, half: &'a Half<N>, from: usize,
    ) -> impl Iterator<Item = (u32, N, u32, &'a [N])> {
        let rows = (0_u32..).zip(half.short.iter()).zip(&self.0).skip(from);
        rows.map(|((row, sum), run)| (row, sum, run.start, half.long.stretch(run.clone())))
    }

    /// Bytes it takes for a half.
    pub(super) const fn bytes<N: Number>(half: &Half<N>) -> usize {
        half.short.len() * size_of::<Range<u32>>()
    }
}
