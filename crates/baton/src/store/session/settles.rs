//! Reporting outcomes: one settle at a time, everything that came meanwhile in the next.

use tokio::sync::{mpsc, oneshot};

use super::caller::Caller;
use crate::{
    message::Run,
    store::{MAX_RUNS, Refusal, Settle, Settled, StoreError},
};

/// Runs after which a settle takes no further report. One that has more than a settle may have is cut.
const MERGED_RUNS: usize = 4096;

/// A report, and who waits for its answer.
pub(super) struct Item {
    runs: Vec<Run>,
    reply: oneshot::Sender<Result<Settled, StoreError>>,
}

/// Makes a report and waits for its answer.
pub(super) async fn report(items: &mpsc::UnboundedSender<Item>, runs: Vec<Run>) -> Result<Settled, StoreError> {
    let answer = post(items, runs)?;
    answer.await.unwrap_or(Err(StoreError::Refused(Refusal::Stale)))
}

/// Makes a report now; the answer may be waited for or not.
pub(super) fn post(
    items: &mpsc::UnboundedSender<Item>, runs: Vec<Run>,
) -> Result<oneshot::Receiver<Result<Settled, StoreError>>, StoreError> {
    let (reply, answer) = oneshot::channel();
    items.send(Item { runs, reply }).map_err(|_| StoreError::Refused(Refusal::Stale))?;
    Ok(answer)
}

/// Sends reports in order until the session is over.
pub(super) async fn run(caller: Caller, mut items: mpsc::UnboundedReceiver<Item>) {
    let mut settle_no = 0;
    let mut over: Option<StoreError> = None;
    while let Some(first) = items.recv().await {
        if let Some(error) = over.clone() {
            first.reply.send(Err(error)).ok();
            continue;
        }
        let mut group = vec![first];
        let mut count = group.iter().map(|item| item.runs.len()).sum::<usize>();
        while count < MERGED_RUNS {
            let Ok(item) = items.try_recv() else { break };
            count += item.runs.len();
            group.push(item);
        }
        let runs = group.iter_mut().flat_map(|item| std::mem::take(&mut item.runs)).collect();
        let answer = settle(&caller, &mut settle_no, runs).await;
        over = answer.as_ref().err().cloned();
        for item in group {
            item.reply.send(answer.clone()).ok();
        }
    }
}

/// Settles any number of runs, one call after the other.
async fn settle(caller: &Caller, settle_no: &mut u64, mut runs: Vec<Run>) -> Result<Settled, StoreError> {
    let mut refused = Vec::new();
    loop {
        let rest = runs.split_off(runs.len().min(MAX_RUNS));
        *settle_no += 1;
        let settled = caller.repeat(Settle { session: caller.id(), settle_no: *settle_no, runs }).await?;
        refused.extend(settled.refused);
        if rest.is_empty() {
            return Ok(Settled { refused });
        }
        runs = rest;
    }
}
