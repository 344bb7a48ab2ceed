//! Settling: what became of claimed messages, and what they keep.

#[cfg(feature = "memory")]
mod engine;
mod kept;
#[cfg(feature = "memory")]
mod open_claim;
#[cfg(feature = "redis")]
mod redis;

use super::{malformed, submit::check_keys};
use crate::{
    message::{Calling, MAX_LAST_ERROR_BYTES, Name, Outcome, Range, Run, SessionId, Submission},
    store::{Facts, StoreError},
};

/// The most runs in one [`Settle`], and ids in one [`Dispose`](super::Dispose).
pub(crate) const MAX_RUNS: usize = 65_536;
/// The longest a retry may be put off.
pub(crate) const MAX_RETRY_MS: u64 = 366 * 24 * 3_600_000;
/// The most parcels of follow-ups that one message may bring: they are stored in one step.
pub(crate) const MAX_FOLLOW_UPS: usize = 1_000;
/// The most bytes of them.
pub(crate) const MAX_FOLLOW_UP_BYTES: usize = 16 << 20;
/// The longest result that is kept.
pub const MAX_RESULT_BYTES: usize = 1 << 20;
/// How long a result is kept.
pub const RESULT_TTL_MS: u64 = 3_600_000;
/// What all results of a fleet may take, and all calls that have ended, unless somebody says otherwise: then the oldest go.
pub const MAX_RESULTS: u64 = 256 << 20;
/// What a result counts for against that, beyond its bytes: about what stores keep beside them. So as many of the oldest as
/// a new one has of these bytes always make room for it.
pub(crate) const A_RESULT: u64 = 256;

/// Reports outcomes. Serial per session: the next number executes, the last one is answered again. Those of a session that is
/// gone are refused with [`Refusal::Stale`](crate::store::Refusal::Stale), and its messages are counted, as those of other
/// refused runs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Who settles.
    pub session: SessionId,
    /// 1, 2, 3 … within the session.
    pub settle_no: u64,
    /// Each judged on its own: all of its messages must be held under its claim.
    pub runs: Vec<Run>,
    /// Bytes that the results of the fleet may take before the oldest go, and as many that its calls may take that have ended;
    /// [`MAX_RESULTS`] unless somebody says otherwise.
    pub max_results: u64,
}

/// The answer to [`Settle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Runs that were refused, as (queue, claim number, messages).
    pub refused: Vec<(Name, u64, Range)>,
}

/// The bytes of submissions.
pub(crate) fn bytes_of(submissions: &[Submission]) -> usize {
    submissions.iter().map(|submission| submission.parcel.bytes().len()).sum()
}

impl Facts for Settle {
    fn session(&self) -> Option<SessionId> {
        Some(self.session)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.runs.len() > MAX_RUNS {
            return malformed("a settle takes up to 65536 runs");
        }
        for run in &self.runs {
            let with_result = matches!(&run.outcome, Outcome::Done { result: Some(_), .. });
            if run.range.len == 0 || run.range.first == 0 || (with_result && run.range.len != 1) {
                return malformed("a run is never empty, and a result belongs to one message");
            }
            if matches!(&run.outcome, Outcome::Retry { after_ms, .. } if *after_ms > MAX_RETRY_MS) {
                return malformed("a retry is put off by at most 366 days");
            }
            if matches!(&run.outcome, Outcome::Retry { error, .. } if error.len() > MAX_LAST_ERROR_BYTES) {
                return malformed("the error of a retry has at most 1 KiB");
            }
            if let Outcome::Done { result, follow_ups } = &run.outcome {
                if result.as_ref().is_some_and(|result| result.len() > MAX_RESULT_BYTES) {
                    return malformed("a result has at most 1 MiB");
                }
                if follow_ups.len() > MAX_FOLLOW_UPS || bytes_of(follow_ups) > MAX_FOLLOW_UP_BYTES {
                    return malformed("the follow-ups of a message are at most 1000 parcels and 16 MiB");
                }
                check_keys(follow_ups)?;
                if follow_ups.iter().any(|submission| matches!(submission.call, Some(Calling::Begins { .. }))) {
                    return malformed("a follow-up begins no call");
                }
                if run.range.len != 1 && follow_ups.iter().any(|submission| submission.call.is_some()) {
                    return malformed("follow-ups join the call of one message");
                }
            }
        }
        Ok(())
    }

    fn new_bodies(&self) -> Option<usize> {
        Some(self.runs.iter().map(|run| run.outcome.brings()).sum()).filter(|bytes| *bytes > 0)
    }
}
