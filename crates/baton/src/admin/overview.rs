//! Who is alive, who holds which baton, how deep the queues are.

use serde::Serialize;

use super::{Admin, AdminError, Unknown, whereabouts::live_nodes};
use crate::{
    Report,
    message::{Name, SessionId},
    store::{SessionView, SourceView, StoreError, Survey},
};

/// A fleet at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Live nodes.
    pub nodes: Vec<NodeState>,
    /// Known sources, by name.
    pub sources: Vec<SourceState>,
    /// Queues, by name.
    pub queues: Vec<QueueState>,
}

/// A live node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeState {
    /// Its session.
    pub session: SessionId,
    /// Where it runs.
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    /// `generator` while it holds a baton, else `worker`.
    pub role: &'static str,
    /// The queues it works for.
    pub queues: Vec<Name>,
    /// How long ago it joined.
    pub age_ms: u64,
    /// How long ago its last beat was.
    pub last_beat_ms: u64,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceState {
    /// Its name.
    pub name: Name,
    /// The queue it feeds.
    pub queue: Name,
    /// The live node that runs it.
    pub holder: Option<SessionId>,
    /// The epoch in force, 0 before the first.
    pub epoch: u64,
    /// Where it stands; empty at the start.
    pub cursor: String,
    /// Whether it has ended.
    pub ended: bool,
    /// Why it does not go on, if nobody runs it and a live node that offers it says that it has failed for good there.
    pub failed: Option<String>,
}

/// How deep a queue is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueState {
    /// Its name.
    pub name: Name,
    /// Waiting to be claimed.
    pub ready: u64,
    /// Waiting to be due.
    pub delayed: u64,
    /// Claimed and not settled.
    pub in_flight: u64,
    /// Finished.
    pub done: u64,
    /// Among the errors.
    pub failed: u64,
    /// Whether it is held back.
    pub paused: bool,
    /// How many live nodes work for it.
    pub nodes: usize,
}

impl QueueState {
    /// Whether messages wait in it and no live node works for it.
    #[must_use]
    pub const fn is_unattended(&self) -> bool {
        self.nodes == 0 && (self.ready > 0 || self.delayed > 0)
    }
}

impl Admin {
    /// The fleet as it is now.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn overview(&self) -> Result<Overview, StoreError> {
        Ok(Overview::of(&self.survey().await?))
    }

    /// One queue as it is now.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue.
    pub async fn queue(&self, name: &Name) -> Result<QueueState, AdminError> {
        let survey = self.survey().await?;
        Unknown::queue(name, &survey).map_or(Ok(()), Err)?;
        let found = Overview::of(&survey).queues.into_iter().find(|it| it.name == *name);
        found.ok_or_else(|| StoreError::Damaged(format!("queue {name} has no books")).into())
    }
}

impl Overview {
    /// What a survey comes to.
    #[must_use]
    pub fn of(survey: &Survey) -> Self {
        let live: Vec<&SessionView> = live_nodes(survey).collect();
        let nodes = live.iter().map(|it| NodeState {
            session: it.session,
            host: it.host.clone(),
            pid: it.pid,
            role: match survey.sources.iter().any(|source| source.holder == Some(it.session)) {
                true => "generator",
                false => "worker",
            },
            queues: it.queues.clone(),
            age_ms: survey.now_ms.saturating_sub(it.joined_ms),
            last_beat_ms: survey.now_ms.saturating_sub(it.beat_ms),
        });
        let sources = survey.sources.iter().map(|it| SourceState {
            name: it.name.clone(),
            queue: it.queue.clone(),
            holder: it.holder.filter(|id| live.iter().any(|node| node.session == *id)),
            epoch: it.epoch,
            cursor: it.cursor.clone(),
            ended: it.ended,
            failed: failed(it, &live),
        });
        let queues = survey.queues.iter().map(|it| QueueState {
            name: it.queue.clone(),
            ready: it.ready,
            delayed: it.delayed,
            in_flight: it.in_flight,
            done: it.done,
            failed: it.failed,
            paused: it.paused,
            nodes: live.iter().filter(|node| node.queues.contains(&it.queue)).count(),
        });
        Self { nodes: nodes.collect(), sources: sources.collect(), queues: queues.collect() }
    }
}

/// What the first live node says of a source that has failed for good there, unless somebody runs it.
fn failed(source: &SourceView, live: &[&SessionView]) -> Option<String> {
    let runs = source.ended || live.iter().any(|node| Some(node.session) == source.holder);
    let reports = live.iter().filter_map(|node| serde_json::from_slice::<Report>(&node.report).ok());
    let mut told = reports.filter_map(|mut report| report.failed_sources.remove(source.name.as_str()));
    told.next().filter(|_| !runs)
}
