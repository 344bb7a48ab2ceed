//! Claim numbers: several claims may be under way, each under a number of its own.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use tokio::sync::oneshot;

use super::{Session, settles};
use crate::{
    message::{Name, Outcome, Run},
    store::{Claim, Claimed, Refusal, StoreError},
};

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

/// Claims in a task of its own; what arrives for nobody is handed back.
pub(super) async fn claim(
    session: &Session, n: u32, max_bytes: u64, queues: Vec<Name>,
) -> Result<(u64, Claimed), StoreError> {
    let (reply, answer) = oneshot::channel();
    let session = session.clone();
    tokio::spawn(async move {
        let (claim_no, claimed) = under_a_number(&session, n, max_bytes, queues).await;
        if let Err(Ok((claim_no, Claimed::Some { queue, pieces }))) = reply.send(claimed.map(|it| (claim_no, it))) {
            let runs = pieces.into_iter().map(|(piece, _)| Run {
                claim_no,
                queue: queue.clone(),
                range: piece.range,
                outcome: Outcome::Back,
            });
            settles::post(&session.settles, runs.collect()).ok();
        }
    });
    answer.await.unwrap_or(Err(StoreError::Refused(Refusal::Stale)))
}

async fn under_a_number(
    session: &Session, n: u32, max_bytes: u64, queues: Vec<Name>,
) -> (u64, Result<Claimed, StoreError>) {
    loop {
        let claim_no = session.numbers.next();
        let claim = Claim { session: session.id(), claim_no, n, max_bytes, queues: queues.clone() };
        match session.caller.repeat(claim).await {
            // All that was held under it has been settled: an answer came so late that its claim was over.
            Err(StoreError::Refused(Refusal::Spent { .. })) => {}
            claimed => {
                if matches!(claimed, Ok(Claimed::Empty { .. })) {
                    session.numbers.give_back(claim_no);
                }
                return (claim_no, claimed);
            }
        }
    }
}
