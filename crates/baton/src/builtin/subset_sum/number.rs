//! The integers that sums are kept in: the narrow ones wherever no sum can leave them, else ones that always suffice.

use std::{
    fmt::Debug,
    ops::{Add, Sub},
};

/// An odd number without a pattern, which spreads what it is multiplied with over the upper bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// An integer that holds every sum, every difference of two sums, and one beyond.
pub(super) trait Number:
    Copy + Ord + Debug + Send + Sync + 'static + Add<Output = Self> + Sub<Output = Self>
{
    /// The same number; whoever asks knows that it fits.
    fn of(wide: i128) -> Self;

    /// The same number.
    fn wide(self) -> i128;

    /// Half of it, towards zero.
    fn halved(self) -> Self;

    /// A number whose upper bits look random; the same for the same.
    fn scattered(self) -> u64;
}

impl Number for i64 {
    fn of(wide: i128) -> Self {
        wide as Self
    }

    fn wide(self) -> i128 {
        self.into()
    }

    fn halved(self) -> Self {
        self / 2
    }

    fn scattered(self) -> u64 {
        self.cast_unsigned().wrapping_mul(SPREAD)
    }
}

impl Number for i128 {
    fn of(wide: i128) -> Self {
        wide
    }

    fn wide(self) -> i128 {
        self
    }

    fn halved(self) -> Self {
        self / 2
    }

    fn scattered(self) -> u64 {
        let bits = self.cast_unsigned();
        ((bits >> 64) as u64).wrapping_mul(SPREAD).rotate_left(29).wrapping_add(bits as u64).wrapping_mul(SPREAD)
    }
}
