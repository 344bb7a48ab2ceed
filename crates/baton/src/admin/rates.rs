//! How fast a fleet is: what changed between two surveys.

use std::time::Duration;

use serde::Serialize;

use super::{
    Admin, AdminError, Unknown, Whereabouts,
    whereabouts::{live_nodes, nodes},
};
use crate::{
    Report,
    message::Name,
    store::{Books, SessionView, StoreError, Survey, TakeSurvey},
};

/// Rates, depth and waiting times over a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// Messages pushed in a second.
    pub pushed_per_s: f64,
    /// Messages finished in a second.
    pub done_per_s: f64,
    /// Messages that failed for good in a second.
    pub failed_per_s: f64,
    /// Waiting to be claimed at the end.
    pub ready: u64,
    /// How long messages waited.
    pub latency_ms: Latency,
}

/// Milliseconds from the push of a message to the start of its handler, of messages that were neither retried nor
/// requeued nor lost with a node before; nothing if none of them was started.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// What half of them did not exceed.
    pub p50: Option<f64>,
    /// What 99 of 100 did not exceed.
    pub p99: Option<f64>,
}

/// What a watcher sees at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Glance {
    /// What happened since the look before.
    #[serde(flatten)]
    pub rates: Rates,
    /// Finished since the fleet began.
    pub done: u64,
    /// Among the errors.
    pub failed: u64,
    /// Not finished yet: waiting, delayed or in flight.
    pub left: u64,
    /// Whether a source of what is watched has not ended yet, so that more may come.
    pub is_fed: bool,
    /// The queues with messages that wait to be claimed, and how many in each: the most first.
    pub waiting: Vec<(Name, u64)>,
    /// The queues that are paused.
    pub paused: Vec<Name>,
    /// Live nodes of the fleet.
    pub nodes: usize,
    /// Those that run a source of what is watched, each once.
    pub generators: Vec<Whereabouts>,
}

/// Looks at a fleet again and again; see [`Admin::watch`].
pub struct Watch {
    admin: Admin,
    queue: Option<Name>,
    every: Duration,
    before: Option<Survey>,
}

impl Admin {
    /// Measures one queue, or all, for so long.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue; the store's failure after the time to wait for it.
    pub async fn rates(&self, queue: Option<&Name>, over: Duration) -> Result<Rates, AdminError> {
        let earlier = self.survey().await?;
        if let Some(unknown) = queue.and_then(|queue| Unknown::queue(queue, &earlier)) {
            return Err(unknown.into());
        }
        tokio::time::sleep(over).await;
        Ok(Rates::between(&earlier, &self.survey().await?, queue))
    }

    /// Watches one queue, or all, with a look every so often.
    #[must_use]
    pub fn watch(&self, queue: Option<&Name>, every: Duration) -> Watch {
        Watch { admin: self.clone(), queue: queue.cloned(), every, before: None }
    }
}

impl Watch {
    /// Waits for the next look and tells what it saw.
    ///
    /// # Errors
    /// The store's failure, at once: the next call looks again, and goes by the last look that succeeded.
    ///
    /// # Cancel safety
    /// A look that is dropped is taken by the next call.
    pub async fn next(&mut self) -> Result<Glance, StoreError> {
        let before = match &self.before {
            Some(before) => before,
            None => self.before.insert(self.admin.fleet.ask(TakeSurvey).await?),
        };
        tokio::time::sleep(self.every).await;
        let now = self.admin.fleet.ask(TakeSurvey).await?;
        let glance = Glance::between(before, &now, self.queue.as_ref());
        self.before = Some(now);
        Ok(glance)
    }
}

impl Glance {
    fn between(earlier: &Survey, later: &Survey, queue: Option<&Name>) -> Self {
        let wanted = |name: &Name| queue.is_none_or(|queue| queue == name);
        let queues = || later.queues.iter().filter(|it| wanted(&it.queue));
        let sum = |pick: fn(&Books) -> u64| queues().map(pick).fold(0, u64::saturating_add);
        let live: Vec<&SessionView> = live_nodes(later).collect();
        let mut waiting: Vec<_> = queues().filter(|it| it.ready > 0).map(|it| (it.queue.clone(), it.ready)).collect();
        waiting.sort_by_key(|(_, ready)| std::cmp::Reverse(*ready));
        // A node that runs several sources is named once.
        let holds =
            |node: &SessionView| later.sources.iter().any(|it| wanted(&it.queue) && it.holder == Some(node.session));
        Self {
            rates: Rates::between(earlier, later, queue),
            done: sum(|it| it.done),
            failed: sum(|it| it.failed),
            left: sum(|it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight)),
            is_fed: later.sources.iter().any(|it| wanted(&it.queue) && !it.ended),
            waiting,
            paused: queues().filter(|it| it.paused).map(|it| it.queue.clone()).collect(),
            nodes: live.len(),
            generators: live.iter().filter(|node| holds(node)).map(|it| Whereabouts::of(it)).collect(),
        }
    }
}

impl Rates {
    /// What happened between two surveys, in one queue or in all.
    #[must_use]
    pub fn between(earlier: &Survey, later: &Survey, queue: Option<&Name>) -> Self {
        let seconds = later.now_ms.saturating_sub(earlier.now_ms).max(1) as f64 / 1000.0;
        let sum = |survey: &Survey, pick: fn(&Books) -> u64| {
            let wanted = survey.queues.iter().filter(|books| queue.is_none_or(|queue| books.queue == *queue));
            wanted.map(pick).fold(0, u64::saturating_add)
        };
        let rate = |pick| tenths(sum(later, pick).saturating_sub(sum(earlier, pick)) as f64 / seconds);
        let waits = waits(earlier, later, queue);
        Self {
            pushed_per_s: rate(|it| it.pushed),
            done_per_s: rate(|it| it.done),
            // The errors are removed; their newest place only grows.
            failed_per_s: rate(|it| it.failed_seq),
            ready: sum(later, |it| it.ready),
            latency_ms: Latency { p50: waits.percentile(0.5).map(tenths), p99: waits.percentile(0.99).map(tenths) },
        }
    }
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// What the nodes counted between two surveys.
fn waits(earlier: &Survey, later: &Survey, queue: Option<&Name>) -> Report {
    let concerned = |it: &&SessionView| queue.is_none_or(|queue| it.queues.contains(queue));
    let report = |it: &SessionView| serde_json::from_slice::<Report>(&it.report).unwrap_or_default();
    nodes(later).filter(concerned).fold(Report::default(), |sum, it| {
        // A node that joined anew goes on counting. Its process may have other sessions, which count nothing.
        let same = |other: &&SessionView| other.session == it.session;
        let process = |other: &&SessionView| (other.pid, &other.host) == (it.pid, &it.host);
        let before = nodes(earlier).find(same).or_else(|| nodes(earlier).find(process));
        let before = before.map(report).unwrap_or_default();
        sum.and(&report(it).since(&before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::SessionId,
        store::{Kind, SourceView},
    };

    fn session(number: u128, kind: Kind, waits: &[u64]) -> SessionView {
        SessionView {
            session: SessionId::from_u128(number),
            kind,
            host: "here".to_owned(),
            pid: 1,
            queues: Vec::new(),
            lease_ms: 1_000,
            join_no: 1,
            joined_ms: 0,
            beat_ms: 0,
            report: serde_json::to_vec(&Report { waits: waits.to_vec(), ..Report::default() }).unwrap().into(),
        }
    }

    #[test]
    fn a_node_that_runs_two_sources_is_named_once() {
        let source = |name: &str, holder: u128| SourceView {
            name: Name::new(name).unwrap(),
            queue: Name::new("q").unwrap(),
            holder: Some(SessionId::from_u128(holder)),
            epoch: 1,
            cursor: String::new(),
            ended: false,
        };
        let sources = vec![source("a", 1), source("b", 1), source("c", 2)];
        let survey = Survey {
            now_ms: 0,
            sessions: [1, 2, 3].map(|it| session(it, Kind::Node, &[])).into(),
            sources,
            queues: Vec::new(),
        };
        let named = Glance::between(&survey, &survey, None).generators;
        assert_eq!(named.len(), 2, "{named:?}");
    }

    #[test]
    fn what_a_node_counted_before_is_found_beside_other_sessions_of_its_process() {
        let survey = |now_ms, sessions| Survey { now_ms, sessions, sources: Vec::new(), queues: Vec::new() };
        let earlier = survey(0, vec![session(1, Kind::Client, &[]), session(2, Kind::Node, &[5, 3])]);
        let later =
            |number, waits| survey(1_000, vec![session(1, Kind::Client, &[]), session(number, Kind::Node, waits)]);
        let rates = Rates::between(&earlier, &later(2, &[5, 3]), None);
        assert_eq!(rates.latency_ms, Latency { p50: None, p99: None }, "nothing was started");
        assert_eq!(waits(&earlier, &later(2, &[6, 3]), None).waits, [1, 0]);
        assert_eq!(waits(&earlier, &later(3, &[6, 3]), None).waits, [1, 0], "it has joined anew");
    }
}
