//! Claim numbers: several claims may be under way, each under a number of its own.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::mpsc;

use super::{Session, finishing::Finishing, settles};
use crate::{
    message::{Name, Outcome, Parcel, Piece, Run},
    store::{Claim, Claimed, Refusal, StoreError},
};

/// How long a claim whose number is too far ahead waits for those before it.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(1);

/// Which numbers are free: the lowest is used first, so that they never run far ahead.
#[derive(Default)]
pub(super) struct ClaimNumbers(Mutex<Free>);

#[derive(Default)]
struct Free {
    returned: BTreeSet<u64>,
    used: u64,
}

impl ClaimNumbers {
    fn next(&self) -> u64 {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.returned.pop_first().unwrap_or_else(|| {
            free.used += 1;
            free.used
        })
    }

    /// An empty claim did not use its number. If a late copy of it gets messages after all, the next claim under
    /// the number is answered with them.
    fn give_back(&self, claim_no: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).returned.insert(claim_no);
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
pub enum Catch {
    /// Messages.
    Some(Held),
    /// Nothing to do.
    Empty {
        /// Milliseconds until the next delayed message is due, if there is one.
        next_due_ms: Option<u64>,
    },
}

/// Claims, at once or when there is something; what arrives for nobody is handed back.
pub(super) async fn claim(
    session: &Session, n: u32, max_bytes: u64, queues: Vec<Name>, wait: Option<Duration>,
) -> Result<Catch, StoreError> {
    Finishing::new(under_a_number(session.clone(), n, max_bytes, queues, wait)).await
}

async fn under_a_number(
    session: Session, n: u32, max_bytes: u64, queues: Vec<Name>, mut wait: Option<Duration>,
) -> Result<Catch, StoreError> {
    let mut claim_no = session.numbers.next();
    loop {
        let claim = Claim { session: session.id(), claim_no, n, max_bytes, queues: queues.clone() };
        return match session.caller.claim(claim, wait.take()).await {
            // One with a far lower number has not been answered yet: it waits for messages, or is being repeated.
            Err(StoreError::Refused(Refusal::OutOfTurn { .. })) => {
                tokio::time::sleep(OVERTAKEN_PAUSE).await;
                continue;
            }
            // All that was held under it has been settled: an answer came so late that its claim was over.
            Err(StoreError::Refused(Refusal::Spent { .. })) => {
                claim_no = session.numbers.next();
                continue;
            }
            Err(error) => Err(error),
            Ok(Claimed::Empty { next_due_ms }) => {
                session.numbers.give_back(claim_no);
                Ok(Catch::Empty { next_due_ms })
            }
            Ok(Claimed::Some { queue, pieces }) => {
                Ok(Catch::Some(Held { claim_no, queue, pieces, settles: session.settles.clone() }))
            }
        };
    }
}
