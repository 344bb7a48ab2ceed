//! Mode `interleaved`: inside the async runtime, a slice of time at a time.

use std::{
    fmt, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    plan::Plan,
    problem::{Problem, Refusal, SearchOptions, Summary},
    walk::{Found, Steps},
};

/// A search in the task that asks for its matches. Between slices everything else in the runtime has its turn; nothing is
/// searched while nobody asks, and dropped, it is over.
pub struct Interleaved {
    problem: Problem,
    options: SearchOptions,
    slice: Duration,
    plan: Plan,
    walk: Box<dyn Steps>,
    found: Found,
    summary: Summary,
    over: bool,
}

impl fmt::Debug for Interleaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interleaved").field("summary", &self.summary).field("over", &self.over).finish_non_exhaustive()
    }
}

impl Interleaved {
    /// The longest it computes before others have their turn, about; a step may take a millisecond longer.
    pub const SLICE: Duration = Duration::from_millis(2);

    /// Makes the problem ready, on a thread for what blocks.
    ///
    /// # Errors
    /// [`Refusal`]: it would cost more than is wished.
    ///
    /// # Cancel safety
    /// Nothing is begun: the thread ends soon.
    pub async fn start(problem: Problem, options: SearchOptions) -> Result<Self, Refusal> {
        let caller = Arc::new(());
        let called = Arc::downgrade(&caller);
        let ready =
            tokio::task::spawn_blocking(move || Self::ready(problem, options, &|| called.strong_count() == 0)).await;
        drop(caller);
        ready.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// The same, on this thread, which it blocks for a moment. Once `cancelled`, it ends soon, and what it gives is of no use.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn ready(problem: Problem, options: SearchOptions, cancelled: &dyn Fn() -> bool) -> Result<Self, Refusal> {
        let plan = Plan::of(&problem)?;
        plan.check(&options, 1, cancelled)?;
        let walk = plan.walk(plan.whole(), options.count_only);
        let (found, summary, over) = (Found::default(), Summary::default(), options.limit == Some(0));
        Ok(Self { problem, options, slice: Self::SLICE, plan, walk, found, summary, over })
    }

    /// The next matches, as many together as were found together; nothing at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost: it goes on from there.
    pub async fn next(&mut self) -> Option<Vec<Vec<i64>>> {
        while !self.over {
            tokio::task::yield_now().await;
            let begun = Instant::now();
            let mut more = true;
            while more && self.found.subsets.is_empty() && begun.elapsed() < self.slice {
                more = self.walk.step(&mut self.found);
            }
            let matches = self.summary.take(&self.problem, &self.options, mem::take(&mut self.found.subsets));
            self.over = !more || self.summary.is_enough(&self.options);
            if self.options.count_only {
                self.summary.count = self.plan.counted(&self.problem, self.found.count, !more);
            }
            self.summary.complete = !more;
            if !matches.is_empty() {
                return Some(matches);
            }
        }
        None
    }

    /// What has been found so far.
    #[must_use]
    pub const fn summary(&self) -> Summary {
        self.summary
    }
}
