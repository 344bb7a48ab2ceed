//! Claim numbers: several claims of a queue may be under way, each under a number of its own.
//!
//! A number is free, or kept for a claim that waits, or in use by one that is under way or holds messages. What the store
//! has under it goes to whoever has the number: a claim under way or a waiting one that claims again is answered with it,
//! and what lies under a free number is handed back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::mpsc;

use super::{Session, caller::Caller, finishing::Finishing, settles, weights::Weights};
use crate::{
    message::{Name, Outcome, Parcel, Run, SessionId, Span},
    store::{Claim, Claimed, Refusal, Rest, StoreError},
};

/// How long a claim whose number is too far ahead waits for those before it.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(1);

/// Which numbers are free, by queue: the lowest is used first, so that they never run far ahead.
#[derive(Default)]
pub(super) struct ClaimNumbers(Mutex<BTreeMap<Name, Free>>);

#[derive(Default)]
struct Free {
    returned: BTreeSet<u64>,
    used: u64,
}

impl ClaimNumbers {
    pub(super) fn next(&self, queue: &Name) -> u64 {
        let mut queues = self.queues();
        if !queues.contains_key(queue) {
            queues.insert(queue.clone(), Free::default());
        }
        let Some(free) = queues.get_mut(queue) else { return 1 };
        free.returned.pop_first().unwrap_or_else(|| {
            free.used += 1;
            free.used
        })
    }

    /// An empty claim did not use its number. If a late copy of it gets messages after all, the next claim under
    /// the number is answered with them.
    pub(super) fn give_back(&self, queue: &Name, claim_no: u64) {
        if let Some(free) = self.queues().get_mut(queue) {
            free.returned.insert(claim_no);
        }
    }

    /// Takes a number that is free; whether it was.
    pub(super) fn take(&self, queue: &Name, claim_no: u64) -> bool {
        self.queues().get_mut(queue).is_some_and(|free| free.returned.remove(&claim_no))
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<Name, Free>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages held under a claim number. Dropped before [`ClaimGuard::into_parts`], it hands all of them back: wherever a
/// caller goes away, nothing is stranded.
pub struct ClaimGuard {
    claim_no: u64,
    queue: Name,
    spans: Vec<(Span, Parcel)>,
    settles: mpsc::UnboundedSender<settles::Item>,
}

impl ClaimGuard {
    /// The claim number, the queue and the messages; settling them is now up to the caller.
    #[must_use]
    pub fn into_parts(mut self) -> (u64, Name, Vec<(Span, Parcel)>) {
        (self.claim_no, self.queue.clone(), std::mem::take(&mut self.spans))
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let (claim_no, queue) = (self.claim_no, &self.queue);
        let back = |range| Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back };
        let runs: Vec<Run> = self.spans.iter().map(|(span, _)| back(span.range)).collect();
        if !runs.is_empty() {
            // A session that is over holds nothing.
            settles::post(&self.settles, runs).ok();
        }
    }
}

/// What a claim brought.
pub struct ClaimReply {
    /// Messages, if there were any.
    pub held: Option<ClaimGuard>,
    /// What the queue has beyond that.
    pub rest: Rest,
}

/// What claims are made with.
#[derive(Clone)]
pub(super) struct Claimer {
    pub(super) caller: Caller,
    pub(super) numbers: std::sync::Arc<ClaimNumbers>,
    pub(super) settles: mpsc::UnboundedSender<settles::Item>,
    pub(super) weights: std::sync::Arc<Weights>,
}

/// How much a claim asks for, and of which queue.
#[derive(Clone)]
pub(super) struct ClaimSize {
    pub(super) queue: Name,
    pub(super) n: u32,
    pub(super) max_bytes: u64,
}

impl ClaimSize {
    /// The request under a number.
    pub(super) fn under(&self, session: SessionId, claim_no: u64) -> Claim {
        let Self { queue, n, max_bytes } = self.clone();
        Claim { session, queue, claim_no, n, max_bytes }
    }
}

/// Claims; what arrives for nobody is handed back.
pub(super) async fn claim(session: &Session, size: ClaimSize) -> Result<ClaimReply, StoreError> {
    let claim_no = session.claimer.numbers.next(&size.queue);
    claim_under(session, size, claim_no).await
}

/// The same under a number that was taken for it.
pub(super) async fn claim_under(session: &Session, size: ClaimSize, claim_no: u64) -> Result<ClaimReply, StoreError> {
    let claimer = session.claimer.clone();
    Finishing::new(async move { claimer.claim(size, claim_no).await }).await
}

impl Claimer {
    /// Claims under a number until it is answered.
    async fn claim(&self, size: ClaimSize, mut claim_no: u64) -> Result<ClaimReply, StoreError> {
        loop {
            return match self.caller.repeat(size.under(self.caller.id(), claim_no)).await {
                // One with a far lower number has not been answered yet: it is being repeated.
                Err(StoreError::Refused(Refusal::OutOfTurn { .. })) => {
                    tokio::time::sleep(OVERTAKEN_PAUSE).await;
                    continue;
                }
                // All that was held under it has been settled: an answer came so late that its claim was over.
                Err(StoreError::Refused(Refusal::Spent { .. })) => {
                    claim_no = self.numbers.next(&size.queue);
                    continue;
                }
                Err(error) => Err(error),
                Ok(Claimed { queue, .. }) if queue != size.queue => {
                    Err(StoreError::Damaged(format!("a claim of {} was answered with messages of {queue}", size.queue)))
                }
                Ok(claimed) => Ok(self.reply(claim_no, claimed)),
            };
        }
    }

    /// What the answer to a claim brought. An empty one gives its number back.
    pub(super) fn reply(&self, claim_no: u64, claimed: Claimed) -> ClaimReply {
        let Claimed { queue, spans, rest } = claimed;
        if spans.is_empty() {
            self.numbers.give_back(&queue, claim_no);
            return ClaimReply { held: None, rest };
        }
        self.weights.note(&queue, claim_no, &spans);
        ClaimReply { held: Some(ClaimGuard { claim_no, queue, spans, settles: self.settles.clone() }), rest }
    }

    /// Hands back what is held under a number that was taken for it.
    pub(super) fn hand_back(&self, queue: Name, claim_no: u64) {
        let (claimer, size) = (self.clone(), ClaimSize { queue, n: 1, max_bytes: 1 });
        // Dropped, it goes back. A session that is over holds nothing.
        tokio::spawn(async move { claimer.claim(size, claim_no).await.map(drop) });
    }
}
