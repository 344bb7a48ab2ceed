//! Failover: how long a source stands still when its generator is killed with -9.

use std::{process::Stdio, time::Duration};

use baton::store::{SourceView, Survey};
use tokio::time::Instant;

use super::{Figures, leashed::Leashed, report::Figure, samples::median, say, stand::Stand};
use crate::failure::Failure;

/// Generators killed.
const KILLS: u32 = 5;
/// How often the source is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// How long a successor is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The queue and the source.
const FAILOVER: &str = "failover";

/// Kills one generator after the other; a second node is there each time.
pub(super) async fn measure(stand: &Stand, figures: &mut Figures) -> Result<(), Failure> {
    let mut nodes = vec![node(stand).await?, node(stand).await?];
    let mut gaps = Vec::new();
    for kill in 1..=KILLS {
        say(stand, &format!("failover {kill} of {KILLS}"));
        let (holder, before) = generator(stand).await?;
        let Some(victim) = nodes.iter().position(|node| node.pid() == holder) else {
            return Err(Failure::new("the source is held by a stranger", "run the command again"));
        };
        let began = Instant::now();
        nodes.swap_remove(victim).kill().await;
        pushed_by_successor(stand, before).await?;
        gaps.push(began.elapsed().as_secs_f64() * 1e3);
        nodes.push(node(stand).await?);
    }
    for node in nodes {
        node.stop().await?;
    }
    stand.drain(FAILOVER).await?;
    figures.failover_median_ms = Figure(median(&gaps));
    figures.failover_max_ms = Figure(gaps.into_iter().reduce(f64::max));
    Ok(())
}

/// A member that offers a source of ticks.
async fn node(stand: &Stand) -> Result<Leashed, Failure> {
    let arguments = ["node", "--handler", "noop", "--interval", "10ms", "--leashed", "--quiet"];
    let named = ["--queue", FAILOVER, "--source", FAILOVER];
    let mut node = Leashed::start(stand, &[&arguments[..], &named].concat(), Stdio::null())?;
    stand.joined(&mut node).await?;
    Ok(node)
}

fn source(survey: &Survey) -> Option<&SourceView> {
    survey.sources.iter().find(|source| source.name.as_str() == FAILOVER)
}

/// Waits until somebody generates; its process id and the source.
async fn generator(stand: &Stand) -> Result<(u32, SourceView), Failure> {
    let (deadline, mut first) = (Instant::now() + PATIENCE, None);
    while Instant::now() < deadline {
        let survey = stand.survey().await?;
        if let Some(source) = source(&survey)
            && let Some(holder) = survey.sessions.iter().find(|it| Some(it.session) == source.holder)
        {
            // It has pushed since it was first seen: it is not killed while it takes over.
            let seen = first.get_or_insert_with(|| source.clone());
            if seen.epoch == source.epoch && seen.cursor != source.cursor {
                return Ok((holder.pid, source.clone()));
            }
            if seen.epoch != source.epoch {
                first = None;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(Failure::new("no node generates", "run the command again"))
}

/// Waits until the source moves under a new epoch.
async fn pushed_by_successor(stand: &Stand, before: SourceView) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = before;
    while Instant::now() < deadline {
        let survey = stand.survey().await?;
        match source(&survey) {
            // What the dead one had sent may still arrive.
            Some(now) if now.epoch == last.epoch => last = now.clone(),
            Some(now) if now.cursor != last.cursor => return Ok(()),
            _ => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(Failure::new("nobody took the source over", "run the command again"))
}
