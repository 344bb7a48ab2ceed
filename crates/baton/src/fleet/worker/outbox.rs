//! Outcomes on their way to the store, as few runs as possible.

use crate::message::{Outcome, Run};

/// Adds a run behind the others; neighbours that are done and leave nothing behind are one.
pub(super) fn add(runs: &mut Vec<Run>, run: Run) {
    if let Some(last) = runs.last_mut()
        && last.claim_no == run.claim_no
        && last.range.end() == run.range.first
        && is_plain(&last.outcome)
        && is_plain(&run.outcome)
    {
        last.range.len += run.range.len;
        return;
    }
    runs.push(run);
}

/// The same outcomes, in the order of their messages: tasks end in any order, and neighbours may meet here.
pub(super) fn in_order(mut runs: Vec<Run>) -> Vec<Run> {
    let place = |run: &Run| (run.claim_no, run.range.first);
    if runs.is_sorted_by_key(place) {
        return runs;
    }
    runs.sort_by_key(place);
    let mut merged = Vec::with_capacity(runs.len());
    runs.into_iter().for_each(|run| add(&mut merged, run));
    merged
}

/// Whether messages failed among these.
pub(super) fn has_failures(runs: &[Run]) -> bool {
    runs.iter().any(|run| is_failure(&run.outcome))
}

/// The same without failures: those messages go back.
pub(super) fn unfailed(mut runs: Vec<Run>) -> Vec<Run> {
    for run in runs.iter_mut().filter(|run| is_failure(&run.outcome)) {
        run.outcome = Outcome::Back;
    }
    runs
}

const fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Retry { .. } | Outcome::Failed { .. })
}

/// Whether it says no more than that messages are done.
fn is_plain(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Done { result: None, follow_ups } if follow_ups.is_empty())
}

#[cfg(test)]
mod tests {
    use futures_util::future::AbortHandle;
    use tokio::time::Instant;

    use super::{
        super::{buffer::Buffer, held::Completed},
        *,
    };
    use crate::message::{Body, Name, Parcel, Range, Span};

    #[test]
    fn neighbours_that_are_done_become_one_run_whatever_order_they_ended_in() {
        let queue = Name::new("q").unwrap();
        let run =
            |claim_no, first, outcome| Run { claim_no, queue: queue.clone(), range: Range { first, len: 1 }, outcome };
        let mut runs = Vec::new();
        for (claim_no, first) in [(1, 5), (1, 6), (2, 9), (1, 4), (2, 8), (1, 7)] {
            add(&mut runs, run(claim_no, first, if first == 7 { Outcome::Back } else { Outcome::DONE }));
        }
        assert_eq!(runs.len(), 5);
        let told: Vec<_> =
            in_order(runs).into_iter().map(|run| (run.claim_no, run.range.first, run.range.len)).collect();
        assert_eq!(told, [(1, 4, 3), (1, 7, 1), (2, 8, 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_gather_but_for_that_of_a_suspect() {
        let (queue, now) = (Name::new("q").unwrap(), Instant::now());
        let mut buffer = Buffer::new(queue.clone(), false);
        let parcel = Parcel::single(Body::new(b"1").unwrap());
        buffer.add(1, vec![(Span::fresh(1, 1, 0), parcel)], now);
        let mut reported = |first, suspect| {
            let run = Run { claim_no: 1, queue: queue.clone(), range: Range { first, len: 1 }, outcome: Outcome::DONE };
            let mut completed = Completed { runs: vec![run], suspect, ..Completed::default() };
            let slot = buffer.expect(AbortHandle::new_pair().0);
            buffer.came(slot, &mut completed);
            let calls = buffer.calls(|| now);
            let runs = buffer.report(now, false);
            if !runs.is_empty() {
                buffer.reported();
            }
            (calls, runs.iter().map(|run| run.range.len).sum::<u32>())
        };
        assert_eq!(reported(11, false), (true, 1), "nothing was reported before");
        assert_eq!(reported(12, false), (false, 0));
        assert_eq!(reported(13, true), (true, 2));
        assert_eq!(reported(14, false), (false, 0));
    }
}
