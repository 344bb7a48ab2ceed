//! Reporting outcomes: one settle at a time, everything that came meanwhile in the next.
//!
//! Once the session is over, reports come too late: others have the messages. They are sent all the same, once, under a
//! number that no settle has. So the store refuses them and counts them.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{
    caller::Caller,
    weights::{MOST_WEIGHT, Weights},
};
use crate::{
    message::{Name, Outcome, Range, Run},
    store::{MAX_RESULTS, MAX_RUNS, Operation as _, Refusal, Settle, Settled, StoreError},
};

/// Runs after which a settle takes no further report.
const MERGED_RUNS: usize = 4096;

/// The number of reports that come too late: no settle is carried out under it.
const LATE: u64 = 0;

/// A report, and who waits for its answer.
pub(super) struct Item {
    runs: Vec<Run>,
    reply: oneshot::Sender<Result<Reported, StoreError>>,
}

/// What became of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    /// Runs that were refused, as [`Settled`] tells them.
    pub refused: Vec<(Name, u64, Range)>,
    /// Runs that bring more than the store has room for: nothing has become of them yet.
    pub unplaced: Vec<Run>,
}

/// Makes a report and waits for its answer.
pub(super) async fn report(items: &mpsc::UnboundedSender<Item>, runs: Vec<Run>) -> Result<Reported, StoreError> {
    let answer = post(items, runs)?;
    answer.await.unwrap_or(Err(StoreError::Refused(Refusal::Stale)))
}

/// Makes a report now; the answer may be waited for or not.
pub(super) fn post(
    items: &mpsc::UnboundedSender<Item>, runs: Vec<Run>,
) -> Result<oneshot::Receiver<Result<Reported, StoreError>>, StoreError> {
    let (reply, answer) = oneshot::channel();
    items.send(Item { runs, reply }).map_err(|_| StoreError::Refused(Refusal::Stale))?;
    Ok(answer)
}

/// Sends reports in order until the session is over.
pub(super) async fn run(
    caller: Caller, mut items: mpsc::UnboundedReceiver<Item>, weights: Arc<Weights>, max_results: u64,
) {
    let mut settle_no = 0;
    let mut over: Option<StoreError> = None;
    while let Some(first) = items.recv().await {
        let mut group = vec![first];
        let mut count = group.iter().map(|item| item.runs.len()).sum::<usize>();
        while count < MERGED_RUNS {
            let Ok(item) = items.try_recv() else { break };
            count += item.runs.len();
            group.push(item);
        }
        let bringing = |item: &Item| item.runs.iter().find(|run| brings(run)).map(|run| run.queue.clone());
        let queues: Vec<Option<Name>> = group.iter().map(bringing).collect();
        let runs = group.iter_mut().flat_map(|item| std::mem::take(&mut item.runs)).collect();
        let mut answer = match over.clone() {
            Some(error) => {
                late(&caller, runs).await;
                Err(error)
            }
            None => settle(&caller, &mut settle_no, runs, &weights, max_results).await,
        };
        over = answer.as_ref().err().cloned();
        for (item, queue) in group.into_iter().zip(queues) {
            // Who brings something to report of a queue has what was not placed there, and reports it again.
            let mut share = answer.clone();
            if let (Ok(share), Ok(rest)) = (&mut share, &mut answer) {
                share.unplaced.retain(|run| Some(&run.queue) == queue.as_ref());
                rest.unplaced.retain(|run| Some(&run.queue) != queue.as_ref());
            }
            item.reply.send(share).ok();
        }
    }
}

/// Settles any number of runs, one call after the other: first those that bring nothing, which a full store takes too.
async fn settle(
    caller: &Caller, settle_no: &mut u64, runs: Vec<Run>, weights: &Weights, max_results: u64,
) -> Result<Reported, StoreError> {
    let mut reported = Reported::default();
    let (bringing, plain): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(brings);
    let mut parts = [in_order(plain, weights), in_order(bringing, weights)];
    while let Some(runs) = parts.iter_mut().find(|runs| !runs.is_empty()) {
        let rest = runs.split_off(fitting(runs, weights));
        let runs = std::mem::replace(runs, rest);
        let settle = Settle { session: caller.id(), settle_no: *settle_no + 1, runs, max_results };
        let if_room = settle.runs.iter().any(brings);
        let mut answered = caller.repeat_from::<Settle>(&settle.clone().request(), if_room).await;
        if matches!(answered.result, Err(StoreError::NoRoom(_))) && answered.ambiguous {
            // An attempt may have been carried out, or yet be, so its number is not free, and others must not wait for
            // room behind it. Whichever the store takes first, that attempt or this, is right and answers for both.
            answered = caller.repeat_from::<Settle>(&given_back(&settle).request(), false).await;
        }
        match answered.result {
            Ok(Settled { refused }) => {
                *settle_no += 1;
                settle.runs.iter().for_each(|run| weights.settled(run));
                reported.refused.extend(refused);
            }
            // It was not carried out: its number is free.
            Err(StoreError::NoRoom(_)) => reported.unplaced.extend(settle.runs),
            Err(error) => {
                if error == StoreError::Refused(Refusal::Stale) {
                    // One that the store has refused, or may have taken before, is not told again.
                    let untold = if answered.from_store || answered.ambiguous { Vec::new() } else { settle.runs };
                    late(caller, untold.into_iter().chain(parts.into_iter().flatten()).collect()).await;
                }
                return Err(error);
            }
        }
    }
    Ok(reported)
}

/// Tells the store of outcomes of a session that is over: it refuses and counts them. Those that go back were not begun.
/// Whether it has heard of all.
pub(super) async fn late(caller: &Caller, runs: Vec<Run>) -> bool {
    let mut left = runs.into_iter().filter(|run| run.outcome != Outcome::Back);
    loop {
        let back = |run: Run| Run { outcome: Outcome::Back, ..run };
        let runs: Vec<Run> = left.by_ref().take(MAX_RUNS).map(back).collect();
        if runs.is_empty() {
            return true;
        }
        let settle = Settle { session: caller.id(), settle_no: LATE, runs, max_results: MAX_RESULTS };
        // Not repeated: it may be counted twice then.
        if !matches!(caller.store().call(settle.request()).await, Err(StoreError::Refused(_))) {
            return false;
        }
    }
}

/// The same messages under the same number, handed back.
fn given_back(settle: &Settle) -> Settle {
    let back = |run: &Run| Run { outcome: Outcome::Back, ..run.clone() };
    Settle { runs: settle.runs.iter().map(back).collect(), ..*settle }
}

/// Whether a run brings what was not in the store before.
fn brings(run: &Run) -> bool {
    matches!(&run.outcome, Outcome::Done { result, follow_ups } if result.is_some() || !follow_ups.is_empty())
}

/// The same runs in the order in which a claim is gone through once, those that fail in parts that a settle may have.
fn in_order(mut runs: Vec<Run>, weights: &Weights) -> Vec<Run> {
    if runs.iter().any(|run| parts(run, weights).is_some()) {
        runs = runs.into_iter().flat_map(|run| parts(&run, weights).unwrap_or_else(|| vec![run])).collect();
    }
    if !runs.is_sorted_by_key(|run| (&run.queue, run.claim_no, run.range.first)) {
        runs.sort_by_cached_key(|run| (run.queue.clone(), run.claim_no, run.range.first));
    }
    runs
}

/// A run of messages that fail, or are of calls, in parts, if it is too heavy as a whole. What one brings belongs to all of it.
fn parts(run: &Run, weights: &Weights) -> Option<Vec<Run>> {
    let fails = matches!(run.outcome, Outcome::Retry { .. } | Outcome::Failed { .. });
    if brings(run) || weights.of(run) <= MOST_WEIGHT || !(fails || weights.of_calls(run) > 0) {
        return None;
    }
    let most = (MOST_WEIGHT / weights.of_each(run)).max(1);
    let part = |first: u64| {
        let len = (run.range.end() - first).min(most as u64) as u32;
        Run { range: Range { first, len }, ..run.clone() }
    };
    Some((run.range.first..run.range.end()).step_by(most).map(part).collect())
}

/// How many of the first runs may be settled at once: at least one.
fn fitting(runs: &[Run], weights: &Weights) -> usize {
    let mut left = MOST_WEIGHT;
    let fits = |run: &&Run| {
        let weight = weights.of(run);
        let fits = weight <= left;
        left = left.saturating_sub(weight);
        fits
    };
    runs.iter().take(MAX_RUNS).take_while(fits).count().clamp(runs.len().min(1), MAX_RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(queue: &str, claim_no: u64, first: u64, len: u32, outcome: Outcome) -> Run {
        Run { claim_no, queue: Name::new(queue).unwrap(), range: Range { first, len }, outcome }
    }

    /// A claim of messages with bodies of `bytes` bytes.
    fn claimed(weights: &Weights, queue: &str, claim_no: u64, len: u32, bytes: usize) {
        let mut builder = crate::message::ParcelBuilder::default();
        for _ in 0..len {
            builder.add(crate::message::Body::new("1".repeat(bytes).as_bytes()).unwrap()).unwrap();
        }
        let span = crate::message::Span::fresh(1, len, 0);
        weights.note(&Name::new(queue).unwrap(), claim_no, &[(span, builder.finish().unwrap())]);
    }

    #[test]
    fn messages_that_fail_weigh_by_their_bodies_until_they_are_settled() {
        let weights = Weights::default();
        claimed(&weights, "q", 1, 40, 100_000);
        claimed(&weights, "q", 2, 40, 100);
        let dead = |claim_no| run("q", claim_no, 1, 40, Outcome::Failed { error: "no".to_owned() });
        let parts = in_order(vec![dead(1), dead(2)], &weights);
        let lens: Vec<_> = parts.iter().map(|run| (run.claim_no, run.range.len)).collect();
        assert_eq!(lens, [(1, 10), (1, 10), (1, 10), (1, 10), (2, 40)]);
        let text = Outcome::Failed { error: "x".repeat(1 << 14) };
        assert_eq!(in_order(vec![run("q", 2, 1, 100, text)], &weights).len(), 2);
        parts.iter().for_each(|run| weights.settled(run));
        assert_eq!(weights.of(&dead(1)), weights.of(&dead(2)), "what was settled is forgotten");
    }

    #[test]
    fn no_settle_weighs_more_than_it_may_and_every_message_is_in_one() {
        let weights = Weights::default();
        let retry = || Outcome::Retry { after_ms: 1, error: String::new() };
        let runs = vec![
            run("q", 2, 1, 2_500, retry()),
            run("p", 1, 7, 1, Outcome::DONE),
            run("q", 1, 9_000, 700, retry()),
            run("q", 1, 5_000, 100_000, Outcome::DONE),
        ];
        let messages: u64 = runs.iter().map(|run| u64::from(run.range.len)).sum();
        let mut left = in_order(runs, &weights);
        let order: Vec<_> = left.iter().map(|run| (run.queue.to_string(), run.claim_no, run.range.first)).collect();
        assert!(order.is_sorted(), "{order:?}");
        let mut seen = 0;
        while !left.is_empty() {
            let rest = left.split_off(fitting(&left, &weights));
            assert!(left.iter().map(|run| weights.of(run)).sum::<usize>() <= MOST_WEIGHT);
            seen += left.iter().map(|run| u64::from(run.range.len)).sum::<u64>();
            left = rest;
        }
        assert_eq!(seen, messages);
    }

    #[test]
    fn a_run_of_calls_goes_in_parts() {
        let weights = Weights::default();
        let call = |id| {
            let part = Some(crate::message::CallRole::First);
            let body = crate::message::Body::new(b"1").unwrap();
            (
                crate::message::Span { role: part, ..crate::message::Span::fresh(id, 1, 0) },
                crate::message::Parcel::single(body),
            )
        };
        weights.note(&Name::new("q").unwrap(), 1, &(1..=300).map(call).collect::<Vec<_>>());
        for outcome in [Outcome::DONE, Outcome::Back, Outcome::Failed { error: "no".to_owned() }] {
            let parts = in_order(vec![run("q", 1, 1, 300, outcome)], &weights);
            assert!(parts.iter().all(|part| weights.of(part) <= MOST_WEIGHT && part.range.len <= 80), "{parts:?}");
            assert_eq!(parts.iter().map(|part| part.range.len).sum::<u32>(), 300);
        }
    }

    #[test]
    fn what_several_messages_bring_together_is_brought_once() {
        let submission = || crate::message::Submission {
            queue: Name::new("q").unwrap(),
            parcel: crate::message::Parcel::single(crate::message::Body::new(b"1").unwrap()),
            key: None,
            call: None,
        };
        let follow_ups = (0..2 * MOST_WEIGHT).map(|_| submission()).collect();
        let runs = vec![run("q", 1, 1, 2, Outcome::Done { result: None, follow_ups })];
        assert_eq!(in_order(runs.clone(), &Weights::default()), runs);
    }
}
