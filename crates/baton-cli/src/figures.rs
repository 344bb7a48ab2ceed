//! How fast a fleet is: what changed between two surveys.

use baton::{
    Report,
    message::Name,
    store::{Books, Kind, SessionView, Survey},
};
use serde::Serialize;

/// Rates, depth and waiting times over a sample.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) pushed_per_s: f64,
    pub(crate) done_per_s: f64,
    pub(crate) dead_per_s: f64,
    pub(crate) ready: u64,
    pub(crate) latency_ms: Latency,
}

/// From the push of a message to the start of its handler; nothing if none was started.
#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
}

impl Figures {
    /// What happened between two surveys, in one queue or in all.
    pub(crate) fn between(earlier: &Survey, later: &Survey, queue: Option<&Name>) -> Self {
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
            // The registry is drained; its newest place only grows.
            dead_per_s: rate(|it| it.dead_seq),
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
    let concerned = |it: &&SessionView| it.kind == Kind::Node && queue.is_none_or(|queue| it.queues.contains(queue));
    let report = |it: &SessionView| serde_json::from_slice::<Report>(&it.report).unwrap_or_default();
    later.sessions.iter().filter(concerned).fold(Report::default(), |sum, it| {
        // A node that joined anew goes on counting.
        let same = |other: &&SessionView| other.session == it.session || (other.pid, &other.host) == (it.pid, &it.host);
        let before = earlier.sessions.iter().find(same).map(report).unwrap_or_default();
        sum.and(&report(it).since(&before))
    })
}

/// The sessions of nodes.
pub(crate) fn nodes(survey: &Survey) -> impl Iterator<Item = &SessionView> {
    survey.sessions.iter().filter(|session| session.kind == Kind::Node)
}

/// Whether a session is within its lease; past it, it is there until somebody reaps it.
pub(crate) const fn is_live(survey: &Survey, session: &SessionView) -> bool {
    survey.now_ms.saturating_sub(session.beat_ms) <= session.lease_ms
}
