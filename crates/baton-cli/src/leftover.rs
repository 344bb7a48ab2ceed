//! A session that stands in the way of an operation: a node that lives, or what a dead one left behind.

use std::time::Duration;

use baton::{message::SessionId, store::TakeSurvey};
use tokio::time::Instant;

use crate::{connection::Connection, exit::Failure, output::tame};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long after its lease the session of a killed node must be gone.
const GRACE: Duration = Duration::from_secs(2);

/// Waits until the session is gone; `host/pid` of one that lives. Who beats is alive, and who does not is gone when its
/// lease is over.
pub(crate) async fn outlive(connection: &Connection, session: SessionId) -> Result<Option<String>, Failure> {
    let mut first: Option<(u64, Instant)> = None;
    let alive = loop {
        // The beats of a session move the fleet's clock on and reap those whose lease is over.
        connection.session().await?;
        let survey = connection.ask(TakeSurvey).await?;
        let Some(it) = survey.sessions.iter().find(|it| it.session == session) else { break None };
        let until = Instant::now() + Duration::from_millis(it.lease_ms) + GRACE;
        let (beat, until) = *first.get_or_insert((it.beat_ms, until));
        if it.beat_ms != beat || Instant::now() > until {
            break Some(format!("{}/{}", tame(&it.host), it.pid));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    connection.leave().await;
    Ok(alive)
}
