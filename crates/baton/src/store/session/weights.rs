//! What a report costs the store: a store that runs one call at a time is to be free again within milliseconds, so long
//! reports go in several calls.
//!
//! Messages that fail are written anew, one by one. How long their bodies are is noted when they are claimed, if they are
//! long, until all of the claim is settled.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::message::{Name, Outcome, Parcel, Piece, Run};

/// What a settle may weigh. Only one message that weighs more by itself goes alone.
pub(super) const MOST_WEIGHT: usize = 1_000;
/// A run of messages that end as they are: it may be a part of a parcel, one of many.
const A_RUN: usize = 4;
/// A message that fails, beyond its body.
const FAILED: usize = 2;
/// Bytes that weigh as much as a follow-up.
const BYTES_A_UNIT: usize = 1_024;

/// Claims with long bodies.
#[derive(Default)]
pub(super) struct Weights(Mutex<BTreeMap<(Name, u64), Heavy>>);

/// A claim with long bodies.
struct Heavy {
    /// Messages that are not settled.
    left: u64,
    /// Bytes of the longest body.
    longest: usize,
}

impl Weights {
    /// Notes what a claim has brought.
    pub(super) fn note(&self, queue: &Name, claim_no: u64, pieces: &[(Piece, Parcel)]) {
        let long = pieces.iter().any(|(_, parcel)| parcel.bytes().len() > BYTES_A_UNIT * parcel.len() as usize);
        if long {
            let bodies = pieces.iter().flat_map(|(_, parcel)| parcel.bodies());
            let longest = bodies.map(|body| body.len()).max().unwrap_or_default();
            let left = pieces.iter().map(|(piece, _)| u64::from(piece.range.len)).sum();
            self.claims().insert((queue.clone(), claim_no), Heavy { left, longest });
        }
    }

    /// Forgets what has been settled.
    pub(super) fn settled(&self, run: &Run) {
        let mut claims = self.claims();
        if claims.is_empty() {
            return;
        }
        let claim = (run.queue.clone(), run.claim_no);
        if let Some(heavy) = claims.get_mut(&claim) {
            heavy.left = heavy.left.saturating_sub(u64::from(run.range.len));
            if heavy.left == 0 {
                claims.remove(&claim);
            }
        }
    }

    /// What a run weighs: each message that it moves by itself, and what it brings.
    pub(super) fn of(&self, run: &Run) -> usize {
        match &run.outcome {
            Outcome::Done { follow_ups, .. } => A_RUN + follow_ups.len() + run.outcome.brings() / BYTES_A_UNIT,
            Outcome::Back => A_RUN,
            Outcome::Retry { .. } | Outcome::Dead { .. } => self.of_each(run) * run.range.len as usize,
        }
    }

    /// What each message of a run that fails weighs.
    pub(super) fn of_each(&self, run: &Run) -> usize {
        let (Outcome::Retry { error, .. } | Outcome::Dead { error }) = &run.outcome else { return 1 };
        let claims = self.claims();
        let claim = if claims.is_empty() { None } else { claims.get(&(run.queue.clone(), run.claim_no)) };
        FAILED + (claim.map_or(0, |heavy| heavy.longest) + error.len()) / BYTES_A_UNIT
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<(Name, u64), Heavy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
