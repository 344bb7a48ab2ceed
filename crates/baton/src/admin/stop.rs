//! The nodes of a fleet are stopped, and waited for until they have gone.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

use super::{Admin, Whereabouts, whereabouts::nodes};
use crate::{
    message::SessionId,
    store::{Order, Stop, StoreError, Survey},
};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long, over the longest lease, nodes that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What came of an order to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// Nodes that have left, or whose processes have ended since the order.
    pub stopped: usize,
    /// Nodes whose processes had ended before the order: killed ones, whose leases still ran.
    pub died: Vec<Whereabouts>,
    /// Whether some had to leave at once.
    pub at_once: bool,
    /// Nodes that are still there. One whose lease ran out is, while its process on this host lives: stopped or cut off, it
    /// joins anew when it goes on, to be told to stop.
    pub survivors: Vec<Whereabouts>,
    /// Nodes that did not answer: their leases ran out, and what they held is others'. Whether their processes live cannot
    /// be told from here.
    pub unanswered: Vec<Whereabouts>,
}

/// Nodes that are waited for, as they were last seen.
struct Awaited {
    there: BTreeMap<SessionId, Sighting>,
    unanswered: Vec<Whereabouts>,
}

struct Sighting {
    node: Whereabouts,
    /// Whether it had not beaten for most of its lease.
    silent: bool,
}

impl Awaited {
    /// Looks again. Who goes while it is silent has not left, but was found out.
    fn look(&mut self, survey: &Survey) {
        let there = std::mem::take(&mut self.there);
        for (session, before) in there {
            match nodes(survey).find(|node| node.session == session) {
                Some(node) => {
                    let silent = survey.now_ms.saturating_sub(node.beat_ms) * 4 > node.lease_ms * 3;
                    self.there.insert(session, Sighting { node: Whereabouts::of(node), silent });
                }
                None if before.silent => self.unanswered.push(before.node),
                None => {}
            }
        }
    }
}

impl Admin {
    /// The nodes that [`Admin::stop`] would order to stop now.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn stoppable(&self) -> Result<Vec<Whereabouts>, StoreError> {
        let survey = self.survey().await?;
        Ok(nodes(&survey).map(Whereabouts::of).filter(|node| node.is_there() != Some(false)).collect())
    }

    /// Stops all nodes that are running now, and waits until they are gone. For `grace` they may finish what runs; then,
    /// or at once without it, they hand back everything. Nodes that start after the order are not concerned.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; the order may have been given.
    ///
    /// # Cancel safety
    /// An order that was given stays given; it is only not waited for.
    pub async fn stop(&self, grace: Option<Duration>) -> Result<Stopped, StoreError> {
        let admin = self.apart();
        let stopped = admin.stop_and_wait(grace).await;
        admin.leave().await;
        stopped
    }

    async fn stop_and_wait(&self, grace: Option<Duration>) -> Result<Stopped, StoreError> {
        let survey = self.survey().await?;
        let sighted =
            nodes(&survey).map(|node| (node.session, Sighting { node: Whereabouts::of(node), silent: false }));
        let mut awaited = Awaited { there: sighted.collect(), unanswered: Vec::new() };
        awaited.look(&survey);
        let is_dead = |node: &Whereabouts| node.is_there() == Some(false);
        let died: Vec<Whereabouts> =
            awaited.there.values().map(|it| &it.node).filter(|node| is_dead(node)).cloned().collect();
        let count = awaited.there.len() - died.len();
        let was_dead = |node: &Whereabouts| died.iter().any(|it| it.session == node.session);
        // Nodes started from here on live.
        let upto = nodes(&survey).map(|node| node.join_no).max();
        let stopped = |at_once, awaited: Awaited| {
            let left = awaited.there.into_values().map(|it| it.node);
            let mut survivors: Vec<Whereabouts> = left.filter(|node| !was_dead(node)).collect();
            let mut unanswered = Vec::new();
            for node in awaited.unanswered.into_iter().filter(|node| !was_dead(node)) {
                match node.is_there() {
                    Some(true) => survivors.push(node),
                    Some(false) => {}
                    None => unanswered.push(node),
                }
            }
            let stopped = count - survivors.len() - unanswered.len();
            Stopped { stopped, died: died.clone(), at_once, survivors, unanswered }
        };
        if awaited.there.is_empty() {
            return Ok(stopped(false, awaited));
        }
        let longest = Duration::from_millis(nodes(&survey).map(|node| node.lease_ms).max().unwrap_or(0));
        if let Some(grace) = grace {
            self.ask(Order::Stop(Stop::Graceful, upto)).await?;
            self.wait_for(&mut awaited, grace).await?;
            if awaited.there.is_empty() {
                return Ok(stopped(false, awaited));
            }
        }
        self.ask(Order::Stop(Stop::Now, upto)).await?;
        self.wait_for(&mut awaited, longest + LAST_WORDS).await?;
        Ok(stopped(true, awaited))
    }

    /// Waits until they are gone, or for so long.
    async fn wait_for(&self, awaited: &mut Awaited, limit: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now() + limit;
        loop {
            // The beats of a session move the fleet's clock on and reap those whose lease is over.
            self.session().await?;
            awaited.look(&self.survey().await?);
            if awaited.there.is_empty() || Instant::now() >= deadline {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
