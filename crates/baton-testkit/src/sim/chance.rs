//! Chance that depends on what it is drawn for, not on when: the same message fails on every node or on none.

use crate::soak::random::Random;

/// A number below `bound` that follows from the seed and what it is drawn for; any number if `bound` is 0.
pub(super) fn drawn(seed: u64, what: &[u64], bound: u64) -> u64 {
    let mixed = what.iter().fold(seed, |mixed, part| Random::part(mixed, *part).below(u64::MAX));
    if bound == 0 { mixed } else { mixed % bound }
}

/// A number that stands for these bytes (FNV-1a).
pub(super) fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
