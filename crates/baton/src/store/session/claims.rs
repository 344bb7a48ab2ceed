//! Claim numbers: several claims of a queue may be under way, each under a number of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::mpsc;

use super::{Session, caller::Caller, finishing::Finishing, settles};
use crate::{
    message::{Name, Outcome, Parcel, Piece, Run},
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
    fn give_back(&self, queue: &Name, claim_no: u64) {
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

/// Messages held under a claim number. Dropped before [`Held::into_parts`], it hands all of them back: wherever a
/// caller goes away, nothing is stranded.
pub struct Held {
    claim_no: u64,
    queue: Name,
    pieces: Vec<(Piece, Parcel)>,
    settles: mpsc::UnboundedSender<settles::Item>,
}

impl Held {
    /// The claim number, the queue and the messages; settling them is now up to the caller.
    #[must_use]
    pub fn into_parts(mut self) -> (u64, Name, Vec<(Piece, Parcel)>) {
        (self.claim_no, self.queue.clone(), std::mem::take(&mut self.pieces))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (claim_no, queue) = (self.claim_no, &self.queue);
        let back = |range| Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back };
        let runs: Vec<Run> = self.pieces.iter().map(|(piece, _)| back(piece.range)).collect();
        if !runs.is_empty() {
            // A session that is over holds nothing.
            settles::post(&self.settles, runs).ok();
        }
    }
}

/// What a claim brought.
pub struct Catch {
    /// Messages, if there were any.
    pub held: Option<Held>,
    /// What the queue has beyond that.
    pub rest: Rest,
}

/// What claims are made with.
#[derive(Clone)]
pub(super) struct Claimer {
    pub(super) caller: Caller,
    pub(super) numbers: std::sync::Arc<ClaimNumbers>,
    pub(super) settles: mpsc::UnboundedSender<settles::Item>,
}

/// How much a claim asks for, and of which queue.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) queue: Name,
    pub(super) n: u32,
    pub(super) max_bytes: u64,
}

/// Claims; what arrives for nobody is handed back.
pub(super) async fn claim(session: &Session, wish: Wish) -> Result<Catch, StoreError> {
    let claimer = session.claimer.clone();
    Finishing::new(async move {
        let claim_no = claimer.numbers.next(&wish.queue);
        claimer.claim(wish, claim_no, None).await
    })
    .await
}

/// Claims under numbers that late copies of empty claims have used, and hands back what that brings.
pub(super) fn hand_back_strays(claimer: &Claimer, claims: &[(Name, u64)]) {
    for (queue, claim_no) in claims {
        if claimer.numbers.take(queue, *claim_no) {
            let (claimer, claim_no) = (claimer.clone(), *claim_no);
            let wish = Wish { queue: queue.clone(), n: 1, max_bytes: 1 };
            // Dropped, it goes back. A session that is over holds nothing.
            tokio::spawn(async move { claimer.claim(wish, claim_no, None).await.map(drop) });
        }
    }
}

impl Claimer {
    /// The request for a wish under a number.
    pub(super) fn request(&self, wish: &Wish, claim_no: u64) -> Claim {
        let Wish { queue, n, max_bytes } = wish.clone();
        Claim { session: self.caller.id(), queue, claim_no, n, max_bytes }
    }

    /// Claims under a number until it is answered; `first` is what came of a first attempt made in another way.
    pub(super) async fn claim(
        &self, wish: Wish, mut claim_no: u64, mut first: Option<Result<Claimed, StoreError>>,
    ) -> Result<Catch, StoreError> {
        loop {
            return match self.caller.claim(self.request(&wish, claim_no), first.take()).await {
                // One with a far lower number has not been answered yet: it is being repeated.
                Err(StoreError::Refused(Refusal::OutOfTurn { .. })) => {
                    tokio::time::sleep(OVERTAKEN_PAUSE).await;
                    continue;
                }
                // All that was held under it has been settled: an answer came so late that its claim was over.
                Err(StoreError::Refused(Refusal::Spent { .. })) => {
                    claim_no = self.numbers.next(&wish.queue);
                    continue;
                }
                Err(error) => Err(error),
                Ok(Claimed { queue, .. }) if queue != wish.queue => {
                    Err(StoreError::Damaged(format!("a claim of {} was answered with messages of {queue}", wish.queue)))
                }
                Ok(Claimed { pieces, rest, .. }) if pieces.is_empty() => {
                    self.numbers.give_back(&wish.queue, claim_no);
                    Ok(Catch { held: None, rest })
                }
                Ok(Claimed { queue, pieces, rest }) => {
                    Ok(Catch { held: Some(Held { claim_no, queue, pieces, settles: self.settles.clone() }), rest })
                }
            };
        }
    }
}
