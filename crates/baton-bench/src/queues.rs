//! One worker process with a thousand queues beside one with a single queue: what they cost at rest, how soon a message
//! of any queue is begun, and what a single message costs the store.

use std::time::Duration;

use super::{
    Figures, Plan,
    cpu::Meter,
    latency::{Raw, Through},
    receiver::{QUEUES, queue_name},
    report::Figure,
    samples::median,
    say,
    target::Target,
};
use crate::failure::Failure;

/// How long after its start the worker is at rest.
const SETTLING: Duration = Duration::from_secs(3);
/// How long the worker is watched at rest.
const REST: Duration = Duration::from_secs(5);
/// What a worker at rest sends.
const REQUESTS: &[&str] = &["fcall", "evalsha", "eval", "blpop"];
/// Pushes before anything is measured.
const WARM_UP: u64 = 20;
/// Turns of pushes, in each of which every way has its own.
const TURNS: u64 = 5;

/// The figures of many queues.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let pushes = (plan.messages / 100).clamp(20, 200);
    say(target, &format!("a worker with {QUEUES} queues, at rest"));
    let mut many = Through::open(target, "queues").await?;
    many.turn(1, queue_name).await?;
    if let Some(bare) = &target.bare {
        // This command does not beat meanwhile; its connections are the one that asks and that of the store.
        target.admin.leave().await;
        figures.queues_connections = Figure(Some(bare.info("clients", &["connected_clients"]).await? - 2.0));
        // It has claimed from each queue once, and found them empty.
        tokio::time::sleep(SETTLING).await;
        let before = bare.calls(REQUESTS).await?;
        tokio::time::sleep(REST).await;
        let requests = bare.calls(REQUESTS).await? - before;
        figures.queues_requests_per_s = Figure(Some(requests / REST.as_secs_f64()));
    }
    say(target, &format!("a worker with {QUEUES} queues, {pushes} pushes to each of some"));
    let mut raw = match &target.bare {
        Some(bare) => Some(Raw::open(target, bare).await?),
        None => None,
    };
    many.turn(WARM_UP, queue_name).await?;
    let (mut through, mut bare, mut cost) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        through.extend(many.turn(pushes.div_ceil(TURNS), queue_name).await?);
        if let Some(raw) = &mut raw {
            bare.extend(raw.turn(pushes.div_ceil(TURNS)).await?);
        }
        cost.extend(spent(target, &mut many, pushes).await?);
    }
    figures.queues_p50_us = Figure(median(&through));
    figures.raw_queues_p50_us = Figure(median(&bare));
    figures.queues_cpu_us = Figure(median(&cost));
    many.stop().await?;
    if let Some(raw) = raw {
        raw.stop().await?;
    }
    say(target, "a worker with one queue");
    let mut one = Through::open(target, "worker").await?;
    one.turn(WARM_UP, |_| queue_name(0)).await?;
    let mut cost = Vec::new();
    for _ in 0..TURNS {
        cost.extend(spent(target, &mut one, pushes).await?);
    }
    figures.one_queue_cpu_us = Figure(median(&cost));
    one.stop().await
}

/// Microseconds of the store for a message of the first queue, pushed singly.
async fn spent(target: &Target, through: &mut Through<'_>, pushes: u64) -> Result<Option<f64>, Failure> {
    let meter = Meter::start(target, through.pid()).await?;
    through.turn(pushes, |_| queue_name(0)).await?;
    Ok(meter.stop().await?.map(|micros| micros / pushes as f64))
}
