//! Starting a source over, also right after its holder was killed.

use std::time::Duration;

use baton::{
    Node, NodeError,
    store::{Refusal, StoreError, TakeSurvey},
};
use tokio::time::Instant;

use crate::{connection::Connection, exit::Failure, output::tame};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long after its lease the session of a killed holder must be gone.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the node's sources over. A holder that does not beat any more is waited for until its lease is over.
pub(super) async fn rewind(connection: &Connection, node: &Node) -> Result<(), Failure> {
    let mut seen = None;
    let mut deadline = None;
    loop {
        let (source, holder) = match node.rewind().await {
            Ok(()) => break,
            Err(NodeError::Store(StoreError::Refused(Refusal::BatonHeld { source_name, holder }))) => {
                (source_name, holder)
            }
            Err(NodeError::Store(error)) => return Err(connection.failure(&error)),
            Err(other) => return Err(Failure::usage(other.to_string(), "see `baton node --help`")),
        };
        // The beats of a session move the fleet's clock on and reap those whose lease is over.
        connection.session().await?;
        let survey = connection.ask(TakeSurvey).await?;
        if let Some(it) = survey.sessions.iter().find(|it| it.session == holder) {
            let until = *deadline.get_or_insert_with(|| Instant::now() + Duration::from_millis(it.lease_ms) + GRACE);
            let beats = *seen.get_or_insert((holder, it.beat_ms)) != (holder, it.beat_ms);
            if beats || Instant::now() > until {
                let (host, pid) = (tame(&it.host), it.pid);
                return Err(Failure::new(format!("{host}/{pid} is running source {source}"), "stop it, then rewind"));
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    connection.leave().await;
    Ok(())
}
