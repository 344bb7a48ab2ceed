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

/// The same runs in the order in which a claim is gone through once, those that fail in parts that a settle may have.
fn in_order(mut runs: Vec<Run>) -> Vec<Run> {
    if runs.iter().any(|run| parts(run).is_some()) {
        runs = runs.into_iter().flat_map(|run| parts(&run).unwrap_or_else(|| vec![run])).collect();
    }
    if !runs.is_sorted_by_key(|run| (&run.queue, run.claim_no, run.range.first)) {
        runs.sort_by_cached_key(|run| (run.queue.clone(), run.claim_no, run.range.first));
    }
    runs
}

/// A run of messages that fail in parts, if it is too heavy as a whole. What any other one brings belongs to all of it.
fn parts(run: &Run) -> Option<Vec<Run>> {
    let fails = matches!(run.outcome, Outcome::Retry { .. } | Outcome::Dead { .. });
    if !fails || weight(run) <= MOST_WEIGHT {
        return None;
    }
    let part = |first: u64| {
        let len = (run.range.end() - first).min(MOST_WEIGHT as u64) as u32;
        Run { range: Range { first, len }, ..run.clone() }
    };
    Some((run.range.first..run.range.end()).step_by(MOST_WEIGHT).map(part).collect())
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

    #[test]
    fn what_several_messages_bring_together_is_brought_once() {
        let lot = || crate::message::Lot {
            queue: Name::new("q").unwrap(),
            parcel: crate::message::Parcel::single(crate::message::Body::new(b"1").unwrap()),
            key: None,
        };
        let follow_ups = (0..2 * MOST_WEIGHT).map(|_| lot()).collect();
        let runs = vec![run("q", 1, 1, 2, Outcome::Done { result: None, follow_ups })];
        assert_eq!(in_order(runs.clone()), runs);
    }
}
