//! Single pushes: many callers in one process, each of which pushes one message a call.
//!
//! Bare Redis has a connection for each caller and one `LPUSH` under way on each, as `redis-benchmark -P 1` does. That
//! tool is asked too if it is installed, but only on a server of this command's own: it leaves a list behind.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::store::StoreUrl;
use tokio::{process::Command, task::JoinSet, time::Instant};

use super::{Figures, Plan, bare, bodies, report::Figure, samples::median, say, target::Target};
use crate::failure::Failure;

/// Callers at once.
const CALLERS: usize = 64;
/// How long a round may take: a slow disk makes fewer calls.
const LIMIT: Duration = Duration::from_secs(3);
/// The most calls in a round.
const MOST: u64 = 200_000;
/// The queue and the list they go to.
pub(super) const SINGLES: &str = "singles";

/// Rounds of singles, the bare ones next to them.
pub(super) async fn measure(plan: &Plan, target: &Target, private: bool, figures: &mut Figures) -> Result<(), Failure> {
    let count = calls(plan);
    figures.counted("singles", count);
    let (mut through, mut raw, mut benchmark) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        say(target, &format!("singles, round {round} of {}", plan.rounds));
        through.push(push(target, plan.bytes, count).await?);
        if let Some(bare) = &target.bare {
            raw.push(push_bare(bare, plan.bytes, count).await?);
            if let StoreUrl::Redis(url) = &target.settings.store.value
                && private
            {
                benchmark.extend(redis_benchmark(url.port().unwrap_or(6379), plan.bytes, count).await);
                bare.remove(&["mylist".to_owned()]).await?;
            }
        }
    }
    target.drain(SINGLES).await?;
    figures.singles_per_s = Figure(median(&through));
    figures.raw_singles_per_s = Figure(median(&raw));
    figures.redis_benchmark_lpush = Figure(median(&benchmark));
    Ok(())
}

/// Calls in a round.
pub(super) fn calls(plan: &Plan) -> u64 {
    (plan.messages / 5).clamp(1_000, MOST)
}

/// Calls a second through one session.
pub(super) async fn push(target: &Target, bytes: usize, count: u64) -> Result<f64, Failure> {
    let fleet = target.fleet();
    target.session().await?;
    let clock = Clock::start(count);
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (queue, body, clock) = (fleet.queue::<str>(SINGLES), bodies::text(bytes), clock.clone());
        callers.spawn(async move {
            let mut calls = 0_u64;
            while clock.goes_on() {
                queue.push(&body).await.map_err(|error| Failure::new(error.to_string(), "run the command again"))?;
                calls += 1;
            }
            Ok(calls)
        });
    }
    let calls = all(callers).await?;
    let rate = clock.rate(calls);
    target.note(SINGLES, calls);
    Ok(rate)
}

/// Calls a second by bare commands, a connection each.
async fn push_bare(bare: &bare::Bare, bytes: usize, count: u64) -> Result<f64, Failure> {
    let list = bare.list(SINGLES);
    let mut connections = Vec::with_capacity(CALLERS);
    for _ in 0..CALLERS {
        connections.push(bare.connect().await?);
    }
    let clock = Clock::start(count);
    let mut callers = JoinSet::new();
    for mut connection in connections {
        let (list, body, clock) = (list.clone(), format!("\"{}\"", bodies::text(bytes)), clock.clone());
        callers.spawn(async move {
            let mut calls = 0_u64;
            while clock.goes_on() {
                let pushed = redis::cmd("LPUSH").arg(&list).arg(&body).query_async::<u64>(&mut connection).await;
                pushed.map_err(|error| bare::failed(&error))?;
                calls += 1;
            }
            Ok(calls)
        });
    }
    let rate = clock.rate(all(callers).await?);
    bare.remove(&[list]).await?;
    Ok(rate)
}

/// What Redis's own tool says; nothing if it is not there.
async fn redis_benchmark(port: u16, bytes: usize, count: u64) -> Option<f64> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", &CALLERS.to_string(), "-P", "1"]);
    command.args(["-n", &count.to_string(), "-d", &bytes.to_string(), "-t", "lpush", "--csv"]);
    let command = command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.trim().strip_prefix("\"LPUSH\",\""))?;
    line.split('"').next()?.parse().ok()
}

/// Who may still call.
#[derive(Clone)]
struct Clock {
    begun: Instant,
    left: Arc<AtomicU64>,
}

impl Clock {
    fn start(count: u64) -> Self {
        Self { begun: Instant::now(), left: Arc::new(AtomicU64::new(count)) }
    }

    fn goes_on(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.begun.elapsed() < LIMIT && self.left.fetch_update(Relaxed, Relaxed, one_less).is_ok()
    }

    fn rate(&self, calls: u64) -> f64 {
        calls as f64 / self.begun.elapsed().as_secs_f64().max(1e-9)
    }
}

/// The calls of all callers.
async fn all(mut callers: JoinSet<Result<u64, Failure>>) -> Result<u64, Failure> {
    let mut calls = 0;
    while let Some(caller) = callers.join_next().await {
        calls += caller
            .unwrap_or_else(|error| Err(Failure::new(format!("a fault in baton itself: {error}"), "report this")))?;
    }
    Ok(calls)
}
