//! Measuring a store: every figure beside what the bare store does in the same run.
//!
//! Each store is measured on a fleet of a new name, by this process and by children on a leash. After the last figure
//! everything is processed, recounted and compared with what was pushed; a figure that was bought with a lost or
//! doubled message is a failure. Whatever way the command ends, its children, its server and its folder end with it.

mod bare;
mod bodies;
mod bulk;
mod cpu;
mod folder;
mod leashed;
mod plan;
mod report;
mod samples;
mod server;
mod stand;

use std::{io::IsTerminal as _, time::Duration};

use baton::store::StoreUrl;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use self::{bodies::Parcels, folder::Folder, report::Figure, samples::median, server::Server, stand::Stand};
pub(crate) use self::{
    plan::{Measure, Plan},
    report::Figures,
};
use crate::{
    command::purge::clear,
    exit::Failure,
    output::remark,
    settings::{Origin, Settings},
};

/// The figures of each store that was measured.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Results {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sqlite: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redis: Option<Figures>,
}

/// Measures the store named on the command line, or SQLite and Redis in a folder of their own.
pub(crate) async fn run(plan: &Plan, settings: &Settings) -> Result<Results, Failure> {
    let wait = settings.wait.value;
    let mut results = Results::default();
    if settings.store.from == Origin::Flag {
        let url = settings.store.value.clone();
        let place = match url {
            StoreUrl::Sqlite(_) => &mut results.sqlite,
            StoreUrl::Redis(_) => &mut results.redis,
            _ => {
                return Err(Failure::usage(
                    "a store in memory is not shared by processes",
                    "name another, or leave --store out",
                ));
            }
        };
        *place = Some(measure_and_clear(plan, url, wait, false).await?);
        return Ok(results);
    }
    let folder = Folder::make()?;
    let sqlite = StoreUrl::Sqlite(folder.path().join("bench.db"));
    results.sqlite = Some(measure_and_clear(plan, sqlite, wait, true).await?);
    match Server::start(folder.path(), plan.aof)? {
        Some(server) => {
            results.redis = Some(measure_and_clear(plan, server.url().parse()?, wait, true).await?);
        }
        None => remark("there is no redis-server on the PATH: only SQLite was measured; install it, or use --store"),
    }
    Ok(results)
}

/// Measures one store until that is done or a signal comes, and leaves nothing there.
async fn measure_and_clear(plan: &Plan, url: StoreUrl, wait: Duration, private: bool) -> Result<Figures, Failure> {
    let stand = Stand::open(url, wait).await?;
    let measured = tokio::select! {
        measured = measure(plan, &stand, private) => measured,
        interrupted = interruption() => interrupted,
    };
    stand.connection.leave().await;
    if private {
        return measured;
    }
    // The first failure is the one to tell.
    let cleared = clear(&stand.connection).await;
    measured.and_then(|figures| cleared.map(|()| figures))
}

async fn interruption() -> Result<Figures, Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::new(format!("cannot listen to signals: {error}"), "run this again"))
    };
    let (mut interrupt, mut terminate, mut hangup) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Err(Failure::new("interrupted: nothing is left running", "run it again for figures"))
}

/// Everything the plan wants of one store.
async fn measure(plan: &Plan, stand: &Stand, private: bool) -> Result<Figures, Failure> {
    let mut figures = Figures::new(stand.settings.store.value.to_string(), plan);
    if let Some(bare) = stand.bare.as_ref().filter(|_| !private) {
        // The connection that asks, and the one of this command's store.
        figures.shared = bare.info("clients", &["connected_clients"]).await? > 2.0;
    }
    if plan.wants_any(&[Measure::Push, Measure::Process, Measure::Whole, Measure::Raw]) {
        in_bulk(plan, stand, &mut figures).await?;
    }
    say(stand, "recount");
    figures.done = stand.settle_up().await?;
    Ok(figures.complete())
}

/// Rounds of bulk, each figure next to its bare counterpart so that both see the same weather.
async fn in_bulk(plan: &Plan, stand: &Stand, figures: &mut Figures) -> Result<(), Failure> {
    let parcels = Parcels::make(plan.messages.max(plan.backlog), plan.parcel, plan.bytes)?;
    let bare = stand.bare.as_ref().filter(|_| plan.wants(Measure::Raw));
    let count = plan.messages;
    let parcel_count = count.div_ceil(u64::from(plan.parcel));
    let rate = |took: Duration| count as f64 / took.as_secs_f64().max(1e-9);
    let mut rounds = Rounds::default();
    if plan.backlog > 0 {
        say(stand, "backlog");
        bulk::submit(stand, bulk::BULK, parcels.of(plan.backlog)).await?;
    }
    for round in 1..=plan.rounds {
        say(stand, &format!("bulk, round {round} of {}", plan.rounds));
        if plan.wants_any(&[Measure::Push, Measure::Process]) {
            let run = bulk::push(stand, bulk::BULK, &parcels, count).await?;
            rounds.push.push(run.per_s);
            rounds.push_cpu.extend(run.cpu_us);
        }
        if let Some(bare) = bare {
            rounds.raw_push.push(rate(bare.push(parcels.of(count)).await?));
        }
        if plan.wants(Measure::Process) {
            let run = bulk::process(stand, bulk::BULK, count).await?;
            rounds.process.push(run.per_s);
            rounds.process_cpu.extend(run.cpu_us);
        }
        if let Some(bare) = bare {
            rounds.raw_process.push(rate(bare.process(parcel_count).await?));
        }
        if plan.wants(Measure::Whole) {
            rounds.whole.push(bulk::whole(stand, bulk::WHOLE, &parcels, count).await?.per_s);
        }
        if let Some(bare) = bare {
            let began = tokio::time::Instant::now();
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

/// Tells the person at the terminal what is being measured.
fn say(stand: &Stand, what: &str) {
    if std::io::stderr().is_terminal() {
        remark(&format!("{}: {what}", stand.settings.store.value));
    }
}
