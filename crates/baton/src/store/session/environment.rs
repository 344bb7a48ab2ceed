//! The environment of a session: whether its chores have threads of their own, and where its chance comes from.
//!
//! A program has the system's: threads, and random numbers of the operating system. A simulator wants neither, since
//! both would make two runs of one seed differ: there, everything runs in the caller's runtime (and in its time, which
//! may be paused), and all that is drawn by chance comes from a seed.

use std::sync::{Arc, Mutex, PoisonError};

use crate::message::SessionId;

/// Threads and chance; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Environment(Option<Arc<Mutex<u64>>>);

impl Environment {
    /// Threads where they are of use, and the operating system's random numbers.
    #[must_use]
    pub const fn system() -> Self {
        Self(None)
    }

    /// No threads, and random numbers that follow from the seed: for simulators, on a runtime of one thread.
    #[must_use]
    pub fn simulated(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(seed))))
    }

    /// Whether chores that must not wait for handlers get threads of their own, or run in the caller's runtime.
    pub(crate) const fn has_threads(&self) -> bool {
        self.0.is_none()
    }

    /// An id for a new session.
    pub(crate) fn session_id(&self) -> SessionId {
        match self.drawn() {
            Some(high) => SessionId::from_u128(u128::from(high) << 64 | u128::from(self.drawn().unwrap_or(0))),
            None => SessionId::random(),
        }
    }

    /// A number from 0 to 1, for jitter.
    pub(crate) fn chance(&self) -> f64 {
        let bits = self.drawn().map_or_else(from_system, |drawn| (drawn >> 48) as u16);
        f64::from(bits) / f64::from(u16::MAX)
    }

    /// The next number of the seed's sequence (splitmix64); nothing without a seed.
    fn drawn(&self) -> Option<u64> {
        let mut state = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }
}

fn from_system() -> u16 {
    let mut bytes = [0; 2];
    // Without random numbers the pause is merely not spread.
    getrandom::fill(&mut bytes).ok();
    u16::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_and_the_system_none() {
        let (one, same, other) = (Environment::simulated(7), Environment::simulated(7), Environment::simulated(8));
        let ids = |environment: &Environment| [environment.session_id(), environment.session_id()];
        let of_one = ids(&one);
        assert_eq!(of_one, ids(&same));
        assert_ne!(of_one[0], of_one[1]);
        assert_ne!(of_one, ids(&other));
        assert_ne!(ids(&Environment::system()), ids(&Environment::system()));
        assert!((0..100).all(|_| (0.0..=1.0).contains(&one.chance())));
    }
}
