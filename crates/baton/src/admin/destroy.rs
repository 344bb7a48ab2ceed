//! All a fleet has stored is removed.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

use super::{Admin, AdminError, Whereabouts, whereabouts::nodes};
use crate::{
    message::SessionId,
    store::{Destroy, Refusal, Removed, SessionView, StoreError},
};

/// How often it is looked whether the leftovers of dead nodes are gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long after the longest lease the leftovers must be gone.
const GRACE: Duration = Duration::from_secs(2);

/// What was there when it was removed: nothing if there was no fleet, or if another destruction was quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Destroyed {
    /// Whether this call has removed the fleet.
    #[serde(rename = "destroyed")]
    pub removed: bool,
    /// Queues.
    pub queues: u64,
    /// Messages waiting or in flight.
    pub messages: u64,
    /// Messages among the errors.
    pub failed: u64,
}

impl Admin {
    /// Removes everything the fleet has stored. Nodes that died without leaving are waited for until their leases are
    /// over.
    ///
    /// # Errors
    /// [`AdminError::NodesAlive`] while a node lives: nothing is removed then. After a failure of the store some may
    /// be; destroying again removes the rest.
    pub async fn destroy(&self) -> Result<Destroyed, AdminError> {
        let admin = self.apart();
        let cleared = admin.clear().await;
        admin.leave().await;
        let was_there =
            |Removed { queues, messages, errors }| Destroyed { removed: true, queues, messages, failed: errors };
        Ok(cleared?.map(was_there).unwrap_or_default())
    }

    /// Removes the fleet; what it held, if it was this call that removed it.
    async fn clear(&self) -> Result<Option<Removed>, AdminError> {
        match self.ask_at_length(Destroy).await {
            Err(StoreError::Refused(Refusal::NodesAlive { .. })) => {}
            removed => return Ok(removed?),
        }
        // The beats of a session move the fleet's clock on and reap those whose lease is over.
        self.session().await?;
        let first = self.survey().await?;
        let beats: BTreeMap<SessionId, u64> = nodes(&first).map(|node| (node.session, node.beat_ms)).collect();
        let longest = nodes(&first).map(|node| node.lease_ms).max().unwrap_or(0);
        let deadline = Instant::now() + Duration::from_millis(longest) + GRACE;
        loop {
            let survey = self.survey().await?;
            let lives = |node: &&SessionView| beats.get(&node.session).is_none_or(|beat| node.beat_ms > *beat);
            let live: Vec<&SessionView> = nodes(&survey).filter(lives).collect();
            if !live.is_empty() {
                return Err(alive(live.into_iter()));
            }
            if nodes(&survey).next().is_none() {
                // Left first, so that nothing is written by this visitor after the data is gone.
                self.leave().await;
                return match self.ask_at_length(Destroy).await {
                    Err(StoreError::Refused(Refusal::NodesAlive { .. })) => Err(alive(nodes(&self.survey().await?))),
                    removed => Ok(removed?),
                };
            }
            if Instant::now() > deadline {
                return Err(alive(nodes(&survey)));
            }
            self.session().await?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn alive<'a>(nodes: impl Iterator<Item = &'a SessionView>) -> AdminError {
    AdminError::NodesAlive { nodes: nodes.map(Whereabouts::of).collect() }
}
