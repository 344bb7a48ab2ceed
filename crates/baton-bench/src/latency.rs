//! From the push of a message to the start of its handler in another process: at rest, and at half of what single
//! pushes reach. At rest it is measured in turns with a bare `RPUSH` and `BLPOP` between two processes.

use std::{process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{BufReader, Lines},
    process::ChildStdout,
    time::Instant,
};

use super::{
    Figures, Plan, bare,
    receiver::{LATENCY, now_ns, queue_name},
    report::Figure,
    samples::{median, percentile},
    say, singles,
    subprocess::Subprocess,
    target::Target,
};
use crate::failure::Failure;

/// Turns of pushes at rest; the median of their percentiles is given.
const TURNS: u32 = 5;
/// Pushes before the first turn.
const WARM_UP: u64 = 20;
/// What lies between an arrival and the next push.
const REST: Duration = Duration::from_millis(3);
/// How long one arrival is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the load lasts, and its highest rate.
const LOAD: (Duration, f64) = (Duration::from_secs(2), 20_000.0);
/// How often the load looks at the clock.
const TICK: Duration = Duration::from_micros(50);

/// Latency at rest and under load.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    say(target, "latency at rest");
    at_rest(plan, target, figures).await?;
    let capacity = match figures.singles_per_s.0 {
        Some(measured) => measured,
        None => singles::push(target, plan.bytes, singles::calls(plan)).await?,
    };
    let rate = (capacity / 2.0).min(LOAD.1);
    say(target, &format!("latency at {rate:.0} messages/s"));
    let samples = under_load(target, rate).await?;
    figures.load_per_s = Figure(Some(rate));
    figures.load_p50_us = Figure(percentile(&samples, 0.5));
    figures.load_p99_us = Figure(percentile(&samples, 0.99));
    Ok(())
}

async fn at_rest(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let pushes = (plan.messages / 100).clamp(20, 500);
    let mut fleet = Through::open(target, "worker").await?;
    let mut raw = match &target.bare {
        Some(bare) => Some(Raw::open(target, bare).await?),
        None => None,
    };
    fleet.turn(WARM_UP, |_| queue_name(0)).await?;
    if let Some(raw) = &mut raw {
        raw.turn(WARM_UP).await?;
    }
    let (mut p50, mut p99, mut raw_p50, mut raw_p99) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let samples = fleet.turn(pushes, |_| queue_name(0)).await?;
        p50.extend(percentile(&samples, 0.5));
        p99.extend(percentile(&samples, 0.99));
        if let Some(raw) = &mut raw {
            let samples = raw.turn(pushes).await?;
            raw_p50.extend(percentile(&samples, 0.5));
            raw_p99.extend(percentile(&samples, 0.99));
        }
    }
    figures.idle_p50_us = Figure(median(&p50));
    figures.idle_p99_us = Figure(median(&p99));
    figures.raw_idle_p50_us = Figure(median(&raw_p50));
    figures.raw_idle_p99_us = Figure(median(&raw_p99));
    fleet.stop().await?;
    match raw {
        Some(raw) => raw.stop().await,
        None => Ok(()),
    }
}

/// Pushes through the fleet, one at a time.
pub(super) struct Through<'a> {
    target: &'a Target,
    receiver: ReceiverProcess,
    pushed: u64,
}

impl<'a> Through<'a> {
    /// With a worker of this role at the other end.
    pub(super) async fn open(target: &'a Target, role: &str) -> Result<Self, Failure> {
        let mut receiver = ReceiverProcess::start(target, role)?;
        target.joined(&mut receiver.child).await?;
        Ok(Self { target, receiver, pushed: 0 })
    }

    /// Pushes one after the other, each to the queue of its number; how long each took.
    pub(super) async fn turn(&mut self, pushes: u64, queue: impl Fn(u64) -> String) -> Result<Vec<f64>, Failure> {
        let mut samples = Vec::new();
        for _ in 0..pushes {
            let queue = queue(self.pushed);
            self.target.fleet().queue(&queue).push(&now_ns()).await.map_err(|error| not_pushed(&error))?;
            self.pushed += 1;
            self.target.note(&queue, 1);
            samples.push(self.receiver.next().await?);
            tokio::time::sleep(REST).await;
        }
        Ok(samples)
    }

    pub(super) fn pid(&self) -> u32 {
        self.receiver.child.pid()
    }

    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.receiver.child.stop().await
    }
}

/// Pushes to a bare list, one at a time.
pub(super) struct Raw {
    connection: redis::aio::MultiplexedConnection,
    list: String,
    receiver: ReceiverProcess,
}

impl Raw {
    pub(super) async fn open(target: &Target, bare: &bare::Bare) -> Result<Self, Failure> {
        let mut receiver = ReceiverProcess::start(target, "blpop")?;
        // It says when it is ready.
        receiver.next().await?;
        Ok(Self { connection: bare.connect().await?, list: bare.list(LATENCY), receiver })
    }

    pub(super) async fn turn(&mut self, pushes: u64) -> Result<Vec<f64>, Failure> {
        let mut samples = Vec::new();
        for _ in 0..pushes {
            let push = redis::cmd("RPUSH").arg(&self.list).arg(now_ns()).to_owned();
            push.query_async::<u64>(&mut self.connection).await.map_err(|error| bare::failed(&error))?;
            samples.push(self.receiver.next().await?);
            tokio::time::sleep(REST).await;
        }
        Ok(samples)
    }

    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.receiver.child.stop().await
    }
}

/// A receiver in a process of its own, which says how long things took.
struct ReceiverProcess {
    child: Subprocess,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl ReceiverProcess {
    fn start(target: &Target, role: &str) -> Result<Self, Failure> {
        let mut child = Subprocess::start(target, &["bench", "--echo", role], Stdio::piped())?;
        let lines = child.lines();
        Ok(Self { child, lines })
    }

    /// The next time it tells, in microseconds; nothing at its end.
    async fn line(&mut self) -> Result<Option<f64>, Failure> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        match tokio::time::timeout(PATIENCE, lines.next_line()).await {
            Ok(Ok(line)) => Ok(line.and_then(|line| line.parse::<f64>().ok()).map(|nanos| nanos / 1e3)),
            Ok(Err(error)) => Err(Failure::new(format!("a child cannot be read: {error}"), "run the command again")),
            Err(_) => Err(Failure::new("a message does not arrive", "run the command again")),
        }
    }

    async fn next(&mut self) -> Result<f64, Failure> {
        let line = self.line().await?;
        self.child.check()?;
        line.ok_or_else(|| Failure::new("a process of the measurement ended early", "run the command again"))
    }
}

/// Pushes at a steady rate, whatever comes back; all times but those of the first tenth.
async fn under_load(target: &Target, rate: f64) -> Result<Vec<f64>, Failure> {
    let mut receiver = ReceiverProcess::start(target, "load")?;
    target.joined(&mut receiver.child).await?;
    let queue = Arc::new(target.fleet().queue::<u64>(LATENCY));
    let runtime = tokio::runtime::Handle::current();
    // A thread of its own: timers of the runtime are too coarse for an even flow.
    let pushing = tokio::task::spawn_blocking(move || {
        let (began, mut pushes) = (Instant::now(), Vec::new());
        while began.elapsed() < LOAD.0 {
            let due = (began.elapsed().as_secs_f64() * rate) as usize;
            while pushes.len() < due {
                let (queue, now) = (queue.clone(), now_ns());
                pushes.push(runtime.spawn(async move { queue.push(&now).await.map(|_| ()) }));
            }
            std::thread::sleep(TICK);
        }
        pushes
    });
    let fault = |error| Failure::new(format!("a fault in baton itself: {error}"), "report this");
    let pushes = pushing.await.map_err(fault)?;
    for push in pushes {
        push.await.map_err(fault)?.map_err(|error| not_pushed(&error))?;
        target.note(LATENCY, 1);
    }
    let pushed = target.books(LATENCY).await?.pushed;
    target.until_done(LATENCY, pushed, &mut receiver.child).await?;
    receiver.child.ask_to_end().await;
    let mut samples = Vec::new();
    while let Some(sample) = receiver.line().await? {
        samples.push(sample);
    }
    receiver.child.stop().await?;
    Ok(samples.split_off(samples.len() / 10))
}

fn not_pushed(error: &baton::PushError) -> Failure {
    Failure::new(error.to_string(), "run the command again")
}
