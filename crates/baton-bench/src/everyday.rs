//! Everyday load: sixteen processes that each push one message a call, alone and with a worker beside them.
//!
//! Alone, the messages wait, so that the memory of one is known too; then they are processed. Beside it, on Redis, as
//! many processes with a bare `LPUSH` each. Rates are from the first call to the last answer, and with a worker to
//! the last message that is done.

use std::time::Duration;

use super::{
    Figures, Plan,
    cpu::Meter,
    lpush, memory,
    producer::{Producer, Producers, Pushed},
    receiver::now_ns,
    report::Figure,
    samples::median,
    say,
    subprocess::Subprocess,
    target::Target,
};
use crate::failure::Failure;

/// Processes that push.
const PROCESSES: u64 = 16;
/// The most messages of a round.
const MOST: u64 = 100_000;
/// The queue they go to.
const EVERYDAY: &str = "everyday";

/// Samples of each round.
#[derive(Default)]
struct Samples {
    push: Vec<f64>,
    push_cpu: Vec<f64>,
    memory: Vec<f64>,
    whole: Vec<f64>,
    whole_cpu: Vec<f64>,
    raw: Vec<f64>,
    raw_cpu: Vec<f64>,
}

/// Rounds of everyday load, the bare ones next to them.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let each = (plan.messages / 10).clamp(PROCESSES * 25, MOST) / PROCESSES;
    let producer = Producer { queue: EVERYDAY.to_owned(), messages: each, bytes: plan.bytes };
    let mut samples = Samples::default();
    figures.counted("everyday load", each * PROCESSES);
    for round in 1..=plan.rounds {
        say(target, &format!("everyday load, round {round} of {}", plan.rounds));
        if let Some(bare) = lpush::measure(target, PROCESSES, each, plan.bytes).await? {
            samples.raw.push(bare.per_s);
            samples.raw_cpu.extend(bare.cpu_us);
        }
        push(target, &producer, &mut samples).await?;
        push_and_process(target, &producer, &mut samples).await?;
    }
    figures.everyday_push_per_s = Figure(median(&samples.push));
    figures.everyday_push_cpu_us = Figure(median(&samples.push_cpu));
    figures.everyday_memory_bytes = Figure(median(&samples.memory));
    figures.everyday_whole_per_s = Figure(median(&samples.whole));
    figures.everyday_whole_cpu_us = Figure(median(&samples.whole_cpu));
    figures.raw_everyday_push_per_s = Figure(median(&samples.raw));
    figures.raw_everyday_push_cpu_us = Figure(median(&samples.raw_cpu));
    Ok(())
}

/// All push, nobody works; afterwards everything is processed.
async fn push(target: &Target, producer: &Producer, samples: &mut Samples) -> Result<(), Failure> {
    let mut producers = Producers::start(target, PROCESSES, producer).await?;
    let before = memory::used(target).await?;
    let meter = Meter::of_server(target).await?;
    let pushed = producers.push(target, EVERYDAY).await?;
    let cpu_us = spent(meter, &pushed).await?;
    let after = memory::used(target).await?;
    producers.stop().await?;
    target.drain(EVERYDAY).await?;
    samples.push.push(pushed.count as f64 / pushed.took.as_secs_f64());
    samples.push_cpu.extend(cpu_us);
    let each = before.zip(after).map(|(before, after)| (after - before) / pushed.count as f64);
    samples.memory.extend(each.map(|each| each - producer.bytes as f64));
    Ok(())
}

/// All push while a worker process does nothing with each message, until the last is done.
async fn push_and_process(target: &Target, producer: &Producer, samples: &mut Samples) -> Result<(), Failure> {
    let before = target.books(EVERYDAY).await?.done;
    let mut worker = Subprocess::worker(target, EVERYDAY).await?;
    let mut producers = Producers::start(target, PROCESSES, producer).await?;
    let meter = Meter::of_server(target).await?;
    let pushed = producers.push(target, EVERYDAY).await?;
    target.until_done(EVERYDAY, before + pushed.count, &mut worker).await?;
    let took = Duration::from_nanos(now_ns().saturating_sub(pushed.begun_ns));
    samples.whole.push(pushed.count as f64 / took.as_secs_f64());
    samples.whole_cpu.extend(spent(meter, &pushed).await?);
    producers.stop().await?;
    worker.stop().await
}

/// Microseconds of the server for each message.
async fn spent(meter: Option<Meter<'_>>, pushed: &Pushed) -> Result<Option<f64>, Failure> {
    let Some(meter) = meter else { return Ok(None) };
    Ok(meter.stop().await?.map(|micros| micros / pushed.count as f64))
}
