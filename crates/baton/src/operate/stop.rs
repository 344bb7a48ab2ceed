//! The nodes of a fleet are stopped, and waited for until they have gone.

use std::{collections::BTreeSet, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

use super::{Operator, Whereabouts, whereabouts::nodes};
use crate::{
    message::SessionId,
    store::{Order, Stop, StoreError},
};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long, over the longest lease, nodes that must stop at once may take.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What came of an order to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// Nodes that have gone.
    pub stopped: usize,
    /// Whether some had to leave at once.
    pub at_once: bool,
    /// Nodes that are still there.
    pub survivors: Vec<Whereabouts>,
}

impl Operator {
    /// Stops all nodes that are running now, and waits until they are gone. For `grace` they may finish what runs; then,
    /// or at once without it, they hand back everything. Nodes that start after the order are not concerned.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; the order may have been given.
    ///
    /// # Cancel safety
    /// An order that was given stays given; it is only not waited for.
    pub async fn stop(&self, grace: Option<Duration>) -> Result<Stopped, StoreError> {
        let operator = self.apart();
        let stopped = operator.stop_and_wait(grace).await;
        operator.leave().await;
        stopped
    }

    async fn stop_and_wait(&self, grace: Option<Duration>) -> Result<Stopped, StoreError> {
        let survey = self.survey().await?;
        let targets: BTreeSet<SessionId> = nodes(&survey).map(|node| node.session).collect();
        // Nodes started from here on live.
        let upto = nodes(&survey).map(|node| node.join_no).max();
        let stopped = |at_once, survivors: Vec<Whereabouts>| Stopped {
            stopped: targets.len() - survivors.len(),
            at_once,
            survivors,
        };
        if targets.is_empty() {
            return Ok(stopped(false, Vec::new()));
        }
        let longest = Duration::from_millis(nodes(&survey).map(|node| node.lease_ms).max().unwrap_or(0));
        if let Some(grace) = grace {
            self.ask(Order::Stop(Stop::Drain, upto)).await?;
            if self.left_of(&targets, grace).await?.is_empty() {
                return Ok(stopped(false, Vec::new()));
            }
        }
        self.ask(Order::Stop(Stop::Now, upto)).await?;
        Ok(stopped(true, self.left_of(&targets, longest + LAST_WORDS).await?))
    }

    /// Waits until the sessions are gone; those that are not, in time.
    async fn left_of(&self, targets: &BTreeSet<SessionId>, limit: Duration) -> Result<Vec<Whereabouts>, StoreError> {
        let deadline = Instant::now() + limit;
        loop {
            // The beats of a session move the fleet's clock on and reap those whose lease is over.
            self.session().await?;
            let survey = self.survey().await?;
            let left: Vec<Whereabouts> =
                nodes(&survey).filter(|node| targets.contains(&node.session)).map(Whereabouts::of).collect();
            if left.is_empty() || Instant::now() >= deadline {
                return Ok(left);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
