//! Measuring a store: every figure beside what the bare store does in the same run.
//!
//! The program that measures is its own children too: it has the commands `node` and `bench` with its [`Receiver`], its
//! [`Producer`] and its [`Workload`]s.
//!
//! Each store is measured on a fleet of a new name, by this process and by children on a leash. After the last figure
//! everything is processed, recounted and compared with what was pushed; a figure that was bought with a lost or
//! doubled message is a failure. Whatever way the command ends, its children, its server and its folder end with it.

mod bare;
mod bodies;
mod bulk;
mod burning;
mod cpu;
mod everyday;
mod failover;
mod failure;
mod folder;
mod latency;
mod lpush;
mod memory;
mod node_run;
mod plan;
mod producer;
mod programs;
mod queues;
mod receiver;
mod report;
mod rounds;
mod samples;
mod singles;
mod subprocess;
mod target;
mod work;
mod workload;

use std::{
    io::{ErrorKind, IsTerminal as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use baton::{Shutdown, store::StoreUrl};
use baton_servers::RedisServer;
use serde::Serialize;

pub use self::{
    failure::Failure,
    plan::{Measure, Plan},
    producer::Producer,
    receiver::Receiver,
    report::Figures,
    workload::Workload,
};
use self::{folder::Folder, target::Target};

/// Hears what a person may want to know, a line at a time.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// The figures of each store that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Results {
    /// Of SQLite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlite: Option<Figures>,
    /// Of Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<Figures>,
}

/// Measures this store, waiting so long for it if it is not up, or else SQLite and Redis in a folder of their own.
/// `shutdown` ends it.
///
/// # Errors
/// [`Failure`]; nothing is left running then.
pub async fn run(
    plan: &Plan, store: Option<StoreUrl>, wait: Duration, shutdown: &Shutdown, tell: Tell,
) -> Result<Results, Failure> {
    let mut results = Results::default();
    if let Some(url) = store {
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
        *place = Some(measure_and_clear(plan, opened(url, wait, tell, shutdown).await?, false, shutdown).await?);
        return Ok(results);
    }
    let folder = Folder::make()?;
    let sqlite = StoreUrl::Sqlite(folder.path().join("bench.db"));
    let target = opened(sqlite, wait, tell.clone(), shutdown).await?;
    results.sqlite = Some(measure_and_clear(plan, target, true, shutdown).await?);
    match start_server(folder.path(), plan.aof)? {
        Some(server) => {
            let target = opened(server.url().parse()?, wait, tell, shutdown).await?;
            results.redis = Some(measure_and_clear(plan, target, true, shutdown).await?);
        }
        None => tell("there is no redis-server on the PATH: only SQLite was measured; install it, or use --store"),
    }
    Ok(results)
}

/// A server of its own; nothing if there is none to start.
fn start_server(folder: &Path, aof: bool) -> Result<Option<RedisServer>, Failure> {
    let aof = if aof { "yes" } else { "no" };
    match RedisServer::start(folder, &["--appendonly", aof, "--appendfsync", "everysec"]) {
        Ok(server) => Ok(Some(server)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(format!("cannot start redis-server: {error}"), "name one with --store")),
    }
}

/// Opens what is measured, unless `shutdown` comes first.
async fn opened(url: StoreUrl, wait: Duration, tell: Tell, shutdown: &Shutdown) -> Result<Target, Failure> {
    unless(shutdown, Target::open(url, wait, tell)).await
}

/// What `work` gives, unless `shutdown` comes first.
async fn unless<T>(shutdown: &Shutdown, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = shutdown.any() => Err(Failure::new("interrupted: nothing is left running", "run it again for figures")),
        done = work => done,
    }
}

/// Measures one store until that is done or a signal comes, and leaves nothing there.
async fn measure_and_clear(
    plan: &Plan, target: Target, private: bool, shutdown: &Shutdown,
) -> Result<Figures, Failure> {
    let measured = unless(shutdown, measure(plan, &target, private)).await;
    target.admin.leave().await;
    if private {
        return measured;
    }
    // The first failure is the one to tell.
    let cleared = target.given(target.admin.destroy().await.map(drop));
    let cleared = match &target.bare {
        Some(bare) => bare.clear().await.and(cleared),
        None => cleared,
    };
    measured.and_then(|figures| cleared.map(|()| figures))
}

/// Everything the plan wants of one store.
async fn measure(plan: &Plan, target: &Target, private: bool) -> Result<Figures, Failure> {
    let mut figures = Figures::new(target.settings.store.value.to_string(), plan);
    if let Some(bare) = target.bare.as_ref().filter(|_| !private) {
        // So far this command has the connection that asks and that of the store.
        figures.shared = bare.info("clients", &["connected_clients"]).await? > 2.0;
    }
    if plan.wants_any(&[Measure::Push, Measure::Process, Measure::Whole, Measure::Raw]) {
        rounds::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Singles) {
        singles::measure(plan, target, private, &mut figures).await?;
    }
    if plan.wants(Measure::Everyday) {
        everyday::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Work) {
        work::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Latency) {
        latency::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Queues) {
        queues::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Failover) {
        failover::measure(target, &mut figures).await?;
    }
    if plan.wants(Measure::Cpu) {
        burning::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Exec) {
        programs::measure(plan, target, &mut figures).await?;
    }
    if plan.wants(Measure::Memory) {
        memory::measure(plan, target, &mut figures).await?;
    }
    say(target, "recount");
    figures.done = target.settle_up().await?;
    Ok(figures.complete())
}

/// Tells the person at the terminal what is being measured.
fn say(target: &Target, what: &str) {
    if std::io::stderr().is_terminal() {
        (target.tell)(&format!("{}: {what}", target.settings.store.value));
    }
}
