//! The right to remove errors of a queue: one session at a time has it.

use std::time::Duration;

use tokio::time::Instant;

use super::{Admin, AdminError};
use crate::{
    message::{MessageId, Name},
    store::{Disposal, Refusal, StoreError, session::Session},
};

/// A session that died is detected within its lease; until then the right is taken.
const BUSY_AT_LEAST: Duration = Duration::from_secs(3);
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The removal of failed messages of one queue.
pub(super) struct ErrorRemoval<'a> {
    admin: &'a Admin,
    session: Session,
    queue: Name,
    disposal: Disposal,
    /// The newest error when it began. Kept when the removal starts again, so that what is requeued and fails again
    /// does not come round in the same run.
    pub(super) upto: u64,
}

impl<'a> ErrorRemoval<'a> {
    /// Takes the right, waiting for a session that may be gone.
    pub(super) async fn begin(admin: &'a Admin, queue: &Name, disposal: Disposal) -> Result<Self, AdminError> {
        let (session, upto) = take(admin, queue).await?;
        Ok(Self { admin, session, queue: queue.clone(), disposal, upto })
    }

    /// Whether it puts errors back into the queue; those without a body stay then.
    pub(super) fn requeues(&self) -> bool {
        self.disposal == Disposal::Requeue
    }

    /// Disposes of errors that were handed over, and says how many; nothing if the session was over and they are to be
    /// looked at again.
    pub(super) async fn dispose(&mut self, ids: Vec<MessageId>) -> Result<Option<u64>, AdminError> {
        let disposing = self.session.dispose(self.queue.clone(), ids, self.disposal);
        match self.admin.attend(&self.session, disposing).await {
            Ok(disposed) => Ok(Some(disposed.count)),
            Err(StoreError::Refused(Refusal::Stale | Refusal::NotRemover)) => {
                (self.session, _) = take(self.admin, &self.queue).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

async fn take(admin: &Admin, queue: &Name) -> Result<(Session, u64), AdminError> {
    let deadline = Instant::now() + admin.wait.max(BUSY_AT_LEAST);
    loop {
        let session = admin.session().await?;
        match admin.attend(&session, session.begin_removal(queue.clone())).await {
            Ok(draining) => return Ok((session, draining.upto)),
            Err(StoreError::Refused(Refusal::RemovalBusy { holder })) if Instant::now() >= deadline => {
                let by = admin.whereabouts(holder).await?;
                return Err(AdminError::RemovalRunning { queue: queue.clone(), by });
            }
            Err(StoreError::Refused(Refusal::RemovalBusy { .. })) => tokio::time::sleep(BUSY_PAUSE).await,
            Err(StoreError::Refused(Refusal::Stale)) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
