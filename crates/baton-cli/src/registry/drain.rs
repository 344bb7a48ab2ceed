//! The right to remove errors of a queue: one session at a time has it.

use std::time::Duration;

use baton::{
    message::Name,
    store::{Disposal, Refusal, StoreError, session::Session},
};
use tokio::time::Instant;

use crate::{connection::Connection, exit::Failure};

/// A drainer that died is found out within its lease; until then the right is taken.
const BUSY_AT_LEAST: Duration = Duration::from_secs(3);
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// A drain of one queue.
pub(super) struct Drain<'a> {
    connection: &'a Connection,
    session: Session,
    queue: Name,
    disposal: Disposal,
    /// The newest error when it began. Kept when the drain is begun anew, so that what is requeued and fails again
    /// does not come round in the same run.
    pub(super) upto: u64,
}

impl<'a> Drain<'a> {
    /// Takes the right, waiting for a drainer that may be gone.
    pub(super) async fn begin(connection: &'a Connection, queue: &Name, disposal: Disposal) -> Result<Self, Failure> {
        let (session, upto) = take(connection, queue).await?;
        Ok(Self { connection, session, queue: queue.clone(), disposal, upto })
    }

    /// Disposes of errors that were printed, and says how many; nothing if the session was over and they are to be
    /// looked at again.
    pub(super) async fn dispose(&mut self, ids: Vec<u64>) -> Result<Option<u64>, Failure> {
        let disposing = self.session.dispose(self.queue.clone(), ids, self.disposal);
        match self.connection.attend(&self.session, disposing).await {
            Ok(disposed) => Ok(Some(disposed.count)),
            Err(StoreError::Refused(Refusal::Stale | Refusal::NotDrainer)) => {
                (self.session, _) = take(self.connection, &self.queue).await?;
                Ok(None)
            }
            Err(error) => Err(self.connection.failure(&error)),
        }
    }
}

async fn take(connection: &Connection, queue: &Name) -> Result<(Session, u64), Failure> {
    let deadline = Instant::now() + connection.wait().max(BUSY_AT_LEAST);
    loop {
        let session = connection.session().await?;
        match connection.attend(&session, session.drain(queue.clone())).await {
            Ok(draining) => return Ok((session, draining.upto)),
            Err(StoreError::Refused(Refusal::DrainBusy { holder })) if Instant::now() >= deadline => {
                let holder = connection.name_of(holder).await?;
                return Err(Failure::new(
                    format!("{holder} is draining the errors of queue {queue}"),
                    "wait for it to end",
                ));
            }
            Err(StoreError::Refused(Refusal::DrainBusy { .. })) => tokio::time::sleep(BUSY_PAUSE).await,
            Err(StoreError::Refused(Refusal::Stale)) => {}
            Err(error) => return Err(connection.failure(&error)),
        }
    }
}
