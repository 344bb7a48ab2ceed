//! Messages pushed singly whose handlers do something: rates, and what a message costs the store from push to done.
//!
//! Everything waits before the worker may begin. The time runs from then until the books say that the last is done;
//! the server's processor time is that of the pushes and of this, without what lies between.

use std::process::Stdio;

use tokio::time::Instant;

use super::{
    Figures, Plan,
    cpu::Meter,
    producer::{Producer, Producers, next},
    report::Figure,
    samples::median,
    say,
    subprocess::Subprocess,
    target::Target,
    workload::Workload,
};
use crate::failure::Failure;

/// The most messages whose handlers burn the processor, and of others.
const MOST: (u64, u64) = (5_000, 20_000);
/// The fewest of each.
const FEWEST: u64 = 100;

/// Rounds of each kind of workload.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let most = |share: u64, most: u64| (plan.messages / share).clamp(FEWEST, most);
    let (few, many) = (most(200, MOST.0), most(50, MOST.1));
    figures.counted("messages of 1 ms CPU", few);
    figures.counted("other messages", many);
    (figures.work_burn_per_s, figures.work_burn_cpu_us) = rounds(plan, target, Workload::Burn, few).await?;
    (figures.work_wait_per_s, figures.work_wait_cpu_us) = rounds(plan, target, Workload::Wait, many).await?;
    (figures.work_fail_per_s, figures.work_fail_cpu_us) = rounds(plan, target, Workload::Fail, many).await?;
    Ok(())
}

async fn rounds(plan: &Plan, target: &Target, workload: Workload, count: u64) -> Result<(Figure, Figure), Failure> {
    let producer = Producer { queue: workload.queue().to_owned(), messages: count, bytes: plan.bytes };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        say(target, &format!("{}, round {round} of {}", workload.queue(), plan.rounds));
        let (rate, cost) = one(target, workload, &producer).await?;
        rates.push(rate);
        costs.extend(cost);
    }
    Ok((Figure(median(&rates)), Figure(median(&costs))))
}

/// Messages a second, and the microseconds of the server for each.
async fn one(target: &Target, workload: Workload, producer: &Producer) -> Result<(f64, Option<f64>), Failure> {
    target.pause(workload.queue(), true).await?;
    let mut pushing = Producers::start(target, 1, producer).await?;
    let meter = Meter::of_server(target).await?;
    let count = pushing.push(target, workload.queue()).await?.count;
    let push_us = spent(meter).await?;
    pushing.stop().await?;
    let goal = target.books(workload.queue()).await?.pushed;

    let messages = count.to_string();
    let arguments = ["bench", "--work", workload.name(), "--messages", &messages];
    let mut worker = Subprocess::start(target, &arguments, Stdio::piped())?;
    let Some(mut lines) = worker.lines() else {
        return Err(Failure::new("a worker has no output", "run the command again"));
    };
    target.joined(&mut worker).await?;
    let meter = Meter::of_server(target).await?;
    let begun = Instant::now();
    target.pause(workload.queue(), false).await?;
    next(&mut worker, &mut lines).await?;
    target.until_done(workload.queue(), goal, &mut worker).await?;
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    let work_us = spent(meter).await?;
    worker.stop().await?;
    let cost = push_us.zip(work_us).map(|(push, work)| (push + work) / count as f64);
    Ok((rate, cost))
}

async fn spent(meter: Option<Meter<'_>>) -> Result<Option<f64>, Failure> {
    match meter {
        Some(meter) => meter.stop().await,
        None => Ok(None),
    }
}
