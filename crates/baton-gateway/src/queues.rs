//! Which queues a gateway takes messages for.
//!
//! **Invariant.** Where the queues of the fleet are described, a message for a queue that is neither described, nor
//! stored, nor worked for by a live node is refused before it is stored. The refusal follows from a survey that began
//! after the request came, so a queue that a node has just begun to work for is never refused.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use baton::{Name, settings::document::meant};
use tokio::time::Instant;

use crate::{fleet_view::View, intake::away, problem::Problem, state::State};

/// How often the store is asked before the request is refused because it does not answer.
const ATTEMPTS: usize = 8;

impl State {
    /// Refuses a queue that is not known; the name is probably mistyped.
    pub(crate) async fn check_queue(&self, queue: &Name) -> Result<(), Problem> {
        let Some(described) = &self.described else { return Ok(()) };
        if described.contains(queue) || self.view.has_seen(queue) {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            match self.view.begun_since(Instant::now()).await {
                Some(view) if view.has(queue) => return Ok(()),
                Some(view) => return Err(unknown_queue(queue, described, &view)),
                // A request for a store that is away waits for it here as it would with its message.
                None => self.asked(|fleet| async move { fleet.session().await.map(drop) }).await?,
            }
        }
        Err(away())
    }
}

fn unknown_queue(queue: &Name, described: &BTreeSet<Name>, view: &View) -> Problem {
    let known = described.iter().chain(view.queues()).map(Name::as_str);
    let near = meant(queue.as_str(), known)
        .map(|near| format!("; did you mean `{near}`? Otherwise"))
        .unwrap_or(":".to_owned());
    let detail = format!(
        "no queue `{queue}`{near} describe it in the fleet's file, start a node that works for it, or have the gateway take \
         messages for any queue (`open_queues = true` under [gateway], or --open-queues)"
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-queue", detail)
}
