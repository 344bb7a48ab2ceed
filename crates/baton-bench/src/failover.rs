//! Failover: how long a source stands still when its generator is killed with -9.

use std::{process::Stdio, time::Duration};

use baton::store::{SourceView, Survey};
use tokio::time::Instant;

use super::{Figures, report::Figure, samples::median, say, subprocess::Subprocess, target::Target};
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
pub(super) async fn measure(target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    let mut nodes = vec![node(target).await?, node(target).await?];
    let mut gaps = Vec::new();
    for kill in 1..=KILLS {
        say(target, &format!("failover {kill} of {KILLS}"));
        let (holder, before) = generator(target).await?;
        let Some(victim) = nodes.iter().position(|node| node.pid() == holder) else {
            return Err(Failure::new("the source is held by a stranger", "run the command again"));
        };
        let began = Instant::now();
        nodes.swap_remove(victim).kill().await;
        pushed_by_successor(target, before).await?;
        gaps.push(began.elapsed().as_secs_f64() * 1e3);
        nodes.push(node(target).await?);
    }
    for node in nodes {
        node.stop().await?;
    }
    target.drain(FAILOVER).await?;
    figures.failover_median_ms = Figure(median(&gaps));
    figures.failover_max_ms = Figure(gaps.into_iter().reduce(f64::max));
    Ok(())
}

/// A node that offers a source of ticks.
async fn node(target: &Target) -> Result<Subprocess, Failure> {
    let arguments = ["node", "--handler", "noop", "--interval", "10ms", "--leashed", "--quiet"];
    let named = ["--queue", FAILOVER, "--source", FAILOVER];
    let mut node = Subprocess::start(target, &[&arguments[..], &named].concat(), Stdio::null())?;
    target.joined(&mut node).await?;
    Ok(node)
}

fn source(survey: &Survey) -> Option<&SourceView> {
    survey.sources.iter().find(|source| source.name.as_str() == FAILOVER)
}

/// Waits until somebody generates; its process id and the source.
async fn generator(target: &Target) -> Result<(u32, SourceView), Failure> {
    let (deadline, mut first) = (Instant::now() + PATIENCE, None);
    while Instant::now() < deadline {
        let survey = target.survey().await?;
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
async fn pushed_by_successor(target: &Target, before: SourceView) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = before;
    while Instant::now() < deadline {
        let survey = target.survey().await?;
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
