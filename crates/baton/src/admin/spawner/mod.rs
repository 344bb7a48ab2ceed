//! Worker processes by load: as many as what arrives, what waits and how long handlers take ask for.
//!
//! | file | what is in it |
//! |---|---|
//! | `figures` | the fleet's counts, from surveys |
//! | `gauge` | how many workers those ask for |
//! | `decision` | how many are started, and which leave |
//!
//! A spawner looks at the fleet twice a second. It keeps to its limits whatever it sees, and while the store is away it
//! changes nothing. Workers that leave finish what they run; ones that crash are started again after ever longer pauses.
//!
//! Every process of a fleet that spawns takes its share of each queue's load, by its machine's cores: nodes tell theirs
//! with their beats ([`Node::beside_workers`](crate::Node::beside_workers)). The limits are those of its own machine, so
//! that a further machine makes the fleet larger. The node beside the workers works too, and so may others that nobody spawned:
//! they are not counted in, and make the backlog smaller.

mod decision;
mod figures;
mod gauge;
#[cfg(test)]
mod traces;

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::watch, time::Instant};

pub use self::decision::Limits;
use self::{
    decision::{Decider, Decision, Hand, LOWER_FOR, UNUSED_FOR},
    figures::{Figures, Stake},
    gauge::{Gauge, Load},
};
use super::{Admin, Supervisor, SupervisorEvent, supervisor::Crew, whereabouts::nodes, wording::span};
use crate::{
    Report, Shutdown,
    message::Name,
    store::{SessionView, Survey, TakeSurvey, session::host_name},
};

/// How often it looks at the fleet.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Starts and retires worker processes; see the module.
pub struct Spawner {
    /// How workers are started.
    pub supervisor: Supervisor,
    /// How many there may be.
    pub limits: Limits,
    /// The machine's cores; the node beside the workers has to tell the same.
    pub cores: u32,
    /// The queues that workers work for, and how many messages of each one works on at once.
    pub queues: BTreeMap<Name, usize>,
    /// Is told how many workers there are.
    pub count: watch::Sender<Workforce>,
}

/// How many workers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Workforce {
    /// Those that run, or are being started.
    pub running: usize,
    /// Those that crashed and are started again after a pause.
    pub resting: usize,
    /// Those that finish what they run, and leave.
    pub leaving: usize,
}

impl Spawner {
    /// Keeps as many workers running as the fleet's load asks for, until asked to stop; returns when all have ended.
    ///
    /// # Cancel safety
    /// Workers are killed if this is dropped.
    pub async fn run(self, admin: &Admin, shutdown: Shutdown) {
        let Self { supervisor, limits, cores, queues, count } = self;
        let mut crew = Crew::new(supervisor);
        if limits.min > 0 {
            crew.tell(&SupervisorEvent::Starting { count: limits.min, why: None });
            crew.start(limits.min);
        }
        let stake = Stake { itself: (host_name(), std::process::id()), cores, queues };
        let (mut figures, mut gauge, mut decider) = (Figures::default(), Gauge::default(), Decider::new(limits));
        let begun = Instant::now();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            count.send_if_modified(|before| {
                let now = workforce(&crew);
                std::mem::replace(before, now) != now
            });
            tokio::select! {
                biased;
                () = shutdown.any() => return crew.end(&shutdown).await,
                () = crew.left() => {}
                _ = looks.tick() => {
                    // Of a fixed number there is nothing to decide.
                    if limits.min >= limits.max {
                        continue;
                    }
                    // A survey that fails leaves everything as it is.
                    let Some(Ok(survey)) = unless(&shutdown, admin.fleet.ask(TakeSurvey)).await else { continue };
                    let now = begun.elapsed();
                    let load = gauge.measure(now, figures.take(&survey, &stake));
                    let hands: Vec<Hand> = crew.staying().map(|member| hand(member, &survey, &stake)).collect();
                    let decision = decider.decide(now, load.need, &hands, crew.leaving());
                    carry_out(&mut crew, &decision, &load, hands.len());
                }
            }
        }
    }
}

/// What comes of it, unless asked to stop first.
async fn unless<T>(shutdown: &Shutdown, asked: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        () = shutdown.any() => None,
        answer = asked => Some(answer),
    }
}

fn workforce(crew: &Crew) -> Workforce {
    let resting = crew.resting();
    Workforce { running: crew.staying().count().saturating_sub(resting), resting, leaving: crew.leaving() }
}

/// A worker as the survey shows it.
fn hand((number, pid): (u64, Option<u32>), survey: &Survey, stake: &Stake) -> Hand {
    let session = nodes(survey).find(|node| Some(node.pid) == pid && node.host == stake.itself.0);
    Hand { number, runs: pid.is_some(), unused_for: session.and_then(unused_for) }
}

/// How long a node has been there without ever being given a message, as far as its last beat tells: what that brings
/// may be as old as the beat before, which is a third of the lease at most.
fn unused_for(node: &SessionView) -> Option<Duration> {
    let report: Report = serde_json::from_slice(&node.report).unwrap_or_default();
    let there = node.beat_ms.saturating_sub(node.joined_ms).saturating_sub(node.lease_ms / 3);
    (!report.given).then(|| Duration::from_millis(there))
}

fn carry_out(crew: &mut Crew, decision: &Decision, load: &Load, before: usize) {
    let Decision { start, surplus, unused } = decision;
    let less = format!("the load asked for no more for {}", span(LOWER_FOR));
    let in_vain = format!("no message for {} in {}", if unused.len() == 1 { "it" } else { "them" }, span(UNUSED_FOR));
    let mut stay = before;
    for (leave, why) in [(surplus, less), (unused, in_vain)] {
        if !leave.is_empty() {
            stay = stay.saturating_sub(leave.len());
            crew.tell(&SupervisorEvent::Retiring { count: leave.len(), stay, why });
            crew.retire(leave);
        }
    }
    if *start > 0 {
        crew.tell(&SupervisorEvent::Starting { count: *start, why: Some(told(load)) });
        crew.start(*start);
    }
}

/// What a load is, in words.
fn told(load: &Load) -> String {
    let Load { arrivals_per_s, waiting, handler_s, .. } = load;
    format!("{arrivals_per_s:.0} messages a second, {waiting} waiting, {:.1} ms each", handler_s * 1000.0)
}
