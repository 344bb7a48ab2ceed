//! Mode `inline`: in this process, on all cores, until it is done.

use std::{
    num::NonZero,
    ops::ControlFlow,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use super::{
    plan::Plan,
    problem::{Part, Problem, Refusal, SearchOptions, Summary},
    walk::Found,
};

/// Pairs a thread must have to be worth its start.
const WORTHWHILE: u64 = 1 << 20;
/// Parts a thread, so that all are busy to the end.
const PARTS: usize = 8;

/// Gives every match to `each`, as many together as were found together, until that breaks off, the limit is reached, or
/// `cancelled` says so, which is seen within milliseconds. Blocks its thread, and uses all cores; while `each` takes its
/// time, the search soon waits.
///
/// # Errors
/// [`Refusal`]: it would cost more than is wished.
pub fn solve(
    problem: &Problem, options: &SearchOptions, cancelled: &(dyn Fn() -> bool + Sync),
    mut each: impl FnMut(Vec<Vec<i64>>) -> ControlFlow<()>,
) -> Result<Summary, Refusal> {
    let chosen = |subsets: Vec<u64>| subsets.into_iter().map(|subset| problem.chosen(subset)).collect();
    search(problem, options, cancelled, |subsets| each(chosen(subsets)))
}

/// As [`solve`], with subsets as bits: a number's is that of its place.
pub(super) fn search(
    problem: &Problem, options: &SearchOptions, cancelled: &(dyn Fn() -> bool + Sync),
    mut each: impl FnMut(Vec<u64>) -> ControlFlow<()>,
) -> Result<Summary, Refusal> {
    let plan = Plan::of(problem)?;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let pairs = plan.check(options, cores, cancelled)?;
    let mut summary = Summary::default();
    if options.limit == Some(0) {
        return Ok(summary);
    }
    let threads = cores.min(usize::try_from(pairs / WORTHWHILE).unwrap_or(cores).max(1));
    let search = Search {
        plan: &plan,
        parts: if threads > 1 { plan.split(threads * PARTS) } else { vec![plan.whole()] },
        next: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        cancelled,
        counting: options.count_only,
    };
    let (matches, batches) = sync_channel::<Vec<u64>>(threads * 2);
    let (count, complete) = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| matches.clone()).collect();
        drop(matches);
        let workers = workers.into_iter().map(|matches| scope.spawn(|| search.run(matches))).collect::<Vec<_>>();
        let given = batches.iter().try_for_each(|subsets| {
            let subsets = summary.wanted(options, subsets);
            if !subsets.is_empty() {
                each(subsets)?;
            }
            if summary.is_enough(options) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        search.over.store(given.is_break(), Ordering::Relaxed);
        drop(batches);
        let ends = workers.into_iter().map(|worker| worker.join().unwrap_or((0, false)));
        ends.fold((0, given.is_continue()), |(count, complete), (further, through)| {
            (count + further, complete && through)
        })
    });
    if options.count_only {
        summary.count = plan.counted(problem, count, complete);
    }
    summary.complete = complete;
    Ok(summary)
}

/// A search that several threads share.
struct Search<'a> {
    plan: &'a Plan,
    parts: Vec<Part>,
    next: AtomicUsize,
    over: AtomicBool,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    counting: bool,
}

impl Search<'_> {
    /// Goes through parts until none is left; how many matches were found, and whether it came to the end.
    fn run(&self, matches: SyncSender<Vec<u64>>) -> (u128, bool) {
        let mut found = Found::default();
        while let Some(part) = self.parts.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut walk = self.plan.walk(*part, self.counting);
            while walk.step(&mut found) {
                if self.over.load(Ordering::Relaxed) || (self.cancelled)() {
                    return (found.count, false);
                }
                if !found.subsets.is_empty() && matches.send(std::mem::take(&mut found.subsets)).is_err() {
                    return (found.count, false);
                }
            }
        }
        (found.count, true)
    }
}
