//! Reporting outcomes: one settle at a time, everything that came meanwhile in the next.

use tokio::sync::{mpsc, oneshot};

use super::caller::Caller;
use crate::{
    message::{Outcome, Range, Run},
    store::{MAX_RUNS, Refusal, Settle, Settled, StoreError},
};

/// Runs after which a settle takes no further report.
const MERGED_RUNS: usize = 4096;
/// What a settle may weigh, by [`weight`]: a store that runs one call at a time is to be free again within milliseconds.
/// Only one message that weighs more by itself goes alone.
const MOST_WEIGHT: usize = 1_000;
/// Bytes that weigh as much as a message.
const BYTES_A_UNIT: usize = 4_096;

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
async fn settle(caller: &Caller, settle_no: &mut u64, runs: Vec<Run>) -> Result<Settled, StoreError> {
    let (mut runs, mut refused) = (in_order(runs), Vec::new());
    loop {
        let rest = runs.split_off(fitting(&runs));
        *settle_no += 1;
        let settled = caller.repeat(Settle { session: caller.id(), settle_no: *settle_no, runs }).await?;
        refused.extend(settled.refused);
        if rest.is_empty() {
            return Ok(Settled { refused });
        }
        runs = rest;
    }
}

/// The same runs in the order in which a claim is gone through once, none of them too heavy that can be cut.
fn in_order(mut runs: Vec<Run>) -> Vec<Run> {
    if runs.iter().any(|run| weight(run) > MOST_WEIGHT && run.range.len > 1) {
        runs = runs.into_iter().flat_map(cut).collect();
    }
    let place = |run: &Run| (run.queue.clone(), run.claim_no, run.range.first);
    let is_sorted = |a: &Run, b: &Run| (a.claim_no, a.range.first) <= (b.claim_no, b.range.first) && a.queue == b.queue;
    if !runs.is_sorted_by(is_sorted) {
        runs.sort_by_cached_key(place);
    }
    runs
}

/// A run in parts that are no heavier than a settle may be.
fn cut(run: Run) -> Vec<Run> {
    let most = if weight(&run) > MOST_WEIGHT { MOST_WEIGHT as u32 } else { run.range.len };
    let firsts = (run.range.first..run.range.end()).step_by(most.max(1) as usize);
    let part = |first: u64| {
        let len = u32::try_from(run.range.end() - first).unwrap_or(u32::MAX).min(most);
        Run { range: Range { first, len }, ..run.clone() }
    };
    firsts.map(part).collect()
}

/// How many of the first runs may be settled at once: at least one.
fn fitting(runs: &[Run]) -> usize {
    let mut left = MOST_WEIGHT;
    let fits = |run: &&Run| {
        let weight = weight(run);
        let fits = weight <= left;
        left = left.saturating_sub(weight);
        fits
    };
    runs.iter().take(MAX_RUNS).take_while(fits).count().clamp(runs.len().min(1), MAX_RUNS)
}

/// What a run costs the store: a unit for each message that it moves by itself, and for what it brings.
fn weight(run: &Run) -> usize {
    match &run.outcome {
        Outcome::Retry { .. } | Outcome::Dead { .. } => run.range.len as usize,
        Outcome::Done { result, follow_ups } => {
            let brought: usize = follow_ups.iter().map(|lot| lot.parcel.bytes().len()).sum();
            let bytes = brought + result.as_ref().map_or(0, bytes::Bytes::len);
            1 + follow_ups.len() + bytes / BYTES_A_UNIT
        }
        Outcome::Back => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Name;

    fn run(queue: &str, claim_no: u64, first: u64, len: u32, outcome: Outcome) -> Run {
        Run { claim_no, queue: Name::new(queue).unwrap(), range: Range { first, len }, outcome }
    }

    #[test]
    fn no_settle_weighs_more_than_it_may_and_every_message_is_in_one() {
        let retry = || Outcome::Retry { after_ms: 1, error: String::new() };
        let runs = vec![
            run("q", 2, 1, 2_500, retry()),
            run("p", 1, 7, 1, Outcome::DONE),
            run("q", 1, 9_000, 700, retry()),
            run("q", 1, 5_000, 100_000, Outcome::DONE),
        ];
        let messages: u64 = runs.iter().map(|run| u64::from(run.range.len)).sum();
        let mut left = in_order(runs);
        let order: Vec<_> = left.iter().map(|run| (run.queue.to_string(), run.claim_no, run.range.first)).collect();
        assert!(order.is_sorted(), "{order:?}");
        let mut seen = 0;
        while !left.is_empty() {
            let rest = left.split_off(fitting(&left));
            assert!(left.iter().map(weight).sum::<usize>() <= MOST_WEIGHT);
            seen += left.iter().map(|run| u64::from(run.range.len)).sum::<u64>();
            left = rest;
        }
        assert_eq!(seen, messages);
    }
}
