//! Rounds of bulk, in which every figure stands beside its bare counterpart.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Figures, Measure, Plan,
    bodies::Parcels,
    bulk,
    report::{BULK, Figure},
    samples::median,
    say,
    target::Target,
};
use crate::failure::Failure;

/// Rounds of bulk, each figure next to its bare counterpart so that both see the same weather.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let parcels = Parcels::make(plan.messages.max(plan.backlog), plan.parcel, plan.bytes)?;
    let bare = target.bare.as_ref().filter(|_| plan.wants(Measure::Raw));
    let count = plan.messages;
    let parcel_count = count.div_ceil(u64::from(plan.parcel));
    let rate = |took: Duration| count as f64 / took.as_secs_f64().max(1e-9);
    let mut rounds = Rounds::default();
    figures.counted(BULK, count);
    // Beside figures of Baton's only their counterparts are given; alone, all of them.
    let alone = !plan.wants_any(&[Measure::Push, Measure::Process, Measure::Whole]);
    let beside = |measure| alone || plan.wants(measure);
    if plan.backlog > 0 {
        say(target, "backlog");
        bulk::submit(target, bulk::BULK, parcels.of(plan.backlog)).await?;
    }
    for round in 1..=plan.rounds {
        say(target, &format!("bulk, round {round} of {}", plan.rounds));
        if plan.wants_any(&[Measure::Push, Measure::Process]) {
            let run = bulk::push(target, bulk::BULK, &parcels, count).await?;
            rounds.push.push(run.per_s);
            rounds.push_cpu.extend(run.cpu_us);
        }
        if let Some(bare) = bare {
            let took = bare.push(parcels.of(count)).await?;
            rounds.raw_push.extend(beside(Measure::Push).then(|| rate(took)));
        }
        if plan.wants(Measure::Process) {
            let run = bulk::process(target, bulk::BULK, count).await?;
            rounds.process.push(run.per_s);
            rounds.process_cpu.extend(run.cpu_us);
        }
        if let Some(bare) = bare {
            let took = bare.process(parcel_count).await?;
            rounds.raw_process.extend(beside(Measure::Process).then(|| rate(took)));
        }
        if plan.wants(Measure::Whole) {
            rounds.whole.push(bulk::whole(target, bulk::WHOLE, &parcels, count).await?.per_s);
        }
        if let Some(bare) = bare.filter(|_| beside(Measure::Whole)) {
            let began = Instant::now();
            tokio::try_join!(bare.push(parcels.of(count)), bare.process(parcel_count))?;
            rounds.raw_whole.push(rate(began.elapsed()));
        }
    }
    if plan.wants(Measure::Push) {
        figures.push_per_s = Figure(median(&rounds.push));
        figures.push_cpu_us = Figure(median(&rounds.push_cpu));
    }
    figures.process_per_s = Figure(median(&rounds.process));
    figures.process_cpu_us = Figure(median(&rounds.process_cpu));
    figures.whole_per_s = Figure(median(&rounds.whole));
    figures.raw_push_per_s = Figure(median(&rounds.raw_push));
    figures.raw_process_per_s = Figure(median(&rounds.raw_process));
    figures.raw_whole_per_s = Figure(median(&rounds.raw_whole));
    Ok(())
}

/// What the rounds of bulk came to.
#[derive(Default)]
struct Rounds {
    push: Vec<f64>,
    push_cpu: Vec<f64>,
    process: Vec<f64>,
    process_cpu: Vec<f64>,
    whole: Vec<f64>,
    raw_push: Vec<f64>,
    raw_process: Vec<f64>,
    raw_whole: Vec<f64>,
}
