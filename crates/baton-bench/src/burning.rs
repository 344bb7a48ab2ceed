//! Handlers that burn the processor: how much of all cores a node gives them.
//!
//! One node in this process, beside bare threads that do the same work and nothing else, one a core, in turns. The work
//! is a number of steps, found once by the clock, and not a time: what a handler loses to others it has to make up for.

use std::{
    hint::black_box,
    num::NonZero,
    thread,
    time::{Duration, Instant},
};

use baton::{Context, Done, Failure as Unfinished, Handler, Message, QueuePolicy};

use super::{Figures, Plan, node_run, report::Figure, samples::median, say, target::Target};
use crate::failure::Failure;

/// How long each side is measured in a round, with as many messages as that takes or less.
const TIME: Duration = Duration::from_secs(2);
/// Handlers at work at once.
const CONCURRENCY: usize = 64;

/// Messages a second with handlers of 0.2 and of 1 ms.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let each = Duration::from_micros(200);
    figures.counted("handlers of 0.2 ms CPU", messages(plan, each));
    (figures.burn_200us_per_s, figures.raw_burn_200us_per_s) = compare(plan, target, "burn-200us", each).await?;
    let each = Duration::from_millis(1);
    figures.counted("handlers of 1 ms CPU", messages(plan, each));
    (figures.burn_1ms_per_s, figures.raw_burn_1ms_per_s) = compare(plan, target, "burn-1ms", each).await?;
    Ok(())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Messages in a round of handlers that take so long.
fn messages(plan: &Plan, each: Duration) -> u64 {
    ((TIME.as_secs_f64() / each.as_secs_f64()) as u64 * cores() as u64).min(plan.messages)
}

async fn compare(plan: &Plan, target: &Target, queue: &str, each: Duration) -> Result<(Figure, Figure), Failure> {
    let (cores, steps, count) = (cores(), steps_in(each), messages(plan, each));
    let (mut through, mut raw) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        say(target, &format!("{queue}, round {round} of {}", plan.rounds));
        raw.push(bare_threads(cores, steps, count).await);
        let policy = QueuePolicy { concurrency: CONCURRENCY, ..QueuePolicy::default() };
        through.push(node_run::rate(target, queue, policy, Burner(steps), count).await?);
    }
    Ok((Figure(median(&through)), Figure(median(&raw))))
}

/// Does so many steps for each message.
struct Burner(u64);

impl Handler for Burner {
    fn handle(&self, _: Message, _: Context) -> impl Future<Output = Result<Done, Unfinished>> + Send + 'static {
        let steps = self.0;
        async move {
            burn(steps);
            Ok(Done::default())
        }
    }
}

/// The same work a second by threads that do nothing else.
async fn bare_threads(cores: usize, steps: u64, count: u64) -> f64 {
    let spin = move || {
        let begun = Instant::now();
        let share = count.div_ceil(cores as u64);
        let bare = || thread::spawn(move || (0..share).for_each(|_| burn(steps)));
        let threads: Vec<_> = (0..cores).map(|_| bare()).collect();
        let ended = threads.into_iter().filter_map(|thread| thread.join().ok()).count();
        (share * ended as u64) as f64 / begun.elapsed().as_secs_f64()
    };
    tokio::task::spawn_blocking(spin).await.unwrap_or(0.0)
}

/// How many steps take this long on a core of their own: the best of several tries.
pub(super) fn steps_in(time: Duration) -> u64 {
    const STEPS: u64 = 1_000_000;
    let tries = (0..20).map(|_| {
        let begun = Instant::now();
        burn(STEPS);
        begun.elapsed()
    });
    let best = tries.min().unwrap_or(time);
    (STEPS as f64 * time.as_secs_f64() / best.as_secs_f64().max(1e-9)) as u64
}

/// Work that cannot be left out or done ahead.
pub(super) fn burn(steps: u64) {
    let mut state = black_box(steps);
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}
