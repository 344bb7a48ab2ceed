//! Chance that all parts of a history share.

use std::sync::{Mutex, PoisonError};

use baton_testkit::soak::random::Random;

/// The same for the same seed and the same order of questions.
pub(crate) struct Chance(Mutex<Random>);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Mutex::new(Random::new(seed)))
    }

    /// A number below this one.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }

    pub(crate) fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }
}
