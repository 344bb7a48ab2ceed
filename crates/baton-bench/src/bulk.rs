//! Bulk: parcels pushed by this process, processed by one worker process, and both at once.

use std::time::Duration;

use baton::store::{
    SubmissionVerdict,
    message::{Parcel, Submission},
    session::SubmitError,
};
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};

use super::{
    bodies::Parcels,
    cpu::Meter,
    subprocess::Subprocess,
    target::{Target, queue},
};
use crate::failure::Failure;

/// Parcels under way at once, as `baton push` has them: the session sends those that wait in up to four calls.
pub(super) const DEPTH: usize = 64;
/// How long a worker that has joined gets to find its queue paused and to wait.
const SETTLE: Duration = Duration::from_millis(100);

/// The queue that bulk goes through.
pub(super) const BULK: &str = "bulk";
/// The queue that is pushed to and worked for at once.
pub(super) const WHOLE: &str = "whole";

/// What one run came to.
pub(super) struct Measured {
    pub(super) per_s: f64,
    /// Processor time of the store for each message, in microseconds.
    pub(super) cpu_us: Option<f64>,
}

impl Measured {
    fn of(messages: u64, took: Duration, cpu_us: Option<f64>) -> Self {
        let messages = messages as f64;
        Self { per_s: messages / took.as_secs_f64().max(1e-9), cpu_us: cpu_us.map(|us| us / messages) }
    }
}

/// Pushes so many messages.
pub(super) async fn push(target: &Target, name: &str, parcels: &Parcels, count: u64) -> Result<Measured, Failure> {
    target.session().await?;
    let meter = Meter::start(target, std::process::id()).await?;
    let began = Instant::now();
    submit(target, name, parcels.of(count)).await?;
    let took = began.elapsed();
    Ok(Measured::of(count, took, meter.stop().await?))
}

/// Lets one worker process so many of the messages that wait.
pub(super) async fn process(target: &Target, name: &str, count: u64) -> Result<Measured, Failure> {
    let before = target.books(name).await?.done;
    target.pause(name, true).await?;
    let mut worker = Subprocess::worker(target, name).await?;
    tokio::time::sleep(SETTLE).await;
    let meter = Meter::start(target, worker.pid()).await?;
    let began = Instant::now();
    target.pause(name, false).await?;
    let done = target.until_done(name, before + count, &mut worker).await?;
    let took = began.elapsed();
    let run = Measured::of(done - before, took, meter.stop().await?);
    worker.stop().await?;
    Ok(run)
}

/// Pushes so many messages while one worker processes them.
pub(super) async fn whole(target: &Target, name: &str, parcels: &Parcels, count: u64) -> Result<Measured, Failure> {
    target.session().await?;
    let before = target.books(name).await?.done;
    let mut worker = Subprocess::worker(target, name).await?;
    tokio::time::sleep(SETTLE).await;
    let began = Instant::now();
    submit(target, name, parcels.of(count)).await?;
    target.until_done(name, before + count, &mut worker).await?;
    let took = began.elapsed();
    worker.stop().await?;
    Ok(Measured::of(count, took, None))
}

/// Hands parcels in, [`DEPTH`] at a time.
pub(super) async fn submit(target: &Target, name: &str, parcels: impl Iterator<Item = Parcel>) -> Result<(), Failure> {
    let (session, to) = (target.session().await?, queue(name)?);
    let mut under_way = JoinSet::new();
    for parcel in parcels {
        if under_way.len() >= DEPTH
            && let Some(answer) = under_way.join_next().await
        {
            stored(target, answer)?;
        }
        target.note(name, u64::from(parcel.len()));
        let (session, submission) = (session.clone(), Submission { queue: to.clone(), parcel, key: None, call: None });
        under_way.spawn(async move { session.submit(vec![submission], None).await });
    }
    while let Some(answer) = under_way.join_next().await {
        stored(target, answer)?;
    }
    Ok(())
}

/// A measurement with a message missing is none.
fn stored(
    target: &Target, answer: Result<Result<Vec<SubmissionVerdict>, SubmitError>, JoinError>,
) -> Result<(), Failure> {
    match answer {
        Ok(Ok(verdicts)) if matches!(verdicts[..], [SubmissionVerdict::Stored { .. }]) => Ok(()),
        Ok(Ok(_)) => Err(Failure::new("the store did not take a parcel", "give it more room")),
        Ok(Err(error)) => Err(target.failure(&error.error)),
        Err(error) => Err(Failure::new(format!("a fault in baton itself: {error}"), "report this")),
    }
}
