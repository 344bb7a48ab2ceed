//! What waits in a queue is removed; a queue is forgotten altogether.

use serde::Serialize;

use super::{Admin, AdminError, Unknown, Whereabouts, whereabouts::live_nodes};
use crate::{
    message::Name,
    store::{Books, Purged, Refusal, RemoveQueue, StoreError, Survey, session::Session},
};

/// How often a queue that gets messages while it is removed is emptied again.
const ATTEMPTS: u32 = 16;

/// What a purge has removed, and what it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PurgedQueue {
    /// The queue.
    pub queue: Name,
    /// Messages removed that waited: ready, delayed, or waiting for a retry.
    pub removed: u64,
    /// Messages in flight afterwards, which were not touched.
    pub in_flight: u64,
    /// Failed messages, which were not touched either.
    pub failed: u64,
}

/// What a queue held that was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemovedQueue {
    /// The queue.
    pub queue: Name,
    /// Messages removed that waited.
    pub removed: u64,
    /// Failed messages removed.
    pub failed: u64,
    /// The sources that feed the queue and were read before. They keep their places, so a later run goes on there; see
    /// [`Admin::remove_source`] and [`Admin::rewind`].
    pub sources: Vec<Name>,
}

impl Admin {
    /// Removes all messages that wait in a queue. What is in flight finishes and counts as usual; failed messages stay, and
    /// so does an idempotency key until it expires. What is pushed meanwhile may be removed too.
    ///
    /// ```
    /// # async fn example(fleet: &baton::Fleet) -> Result<(), baton::admin::AdminError> {
    /// use baton::{Name, admin::Admin};
    ///
    /// let mail = Name::new("mail").expect("a name");
    /// let purged = Admin::new(fleet).purge_queue(&mail).await?;
    /// println!("{} messages removed, {} in flight", purged.removed, purged.in_flight);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue. After a failure of the store some messages may be removed;
    /// purging again removes the rest.
    pub async fn purge_queue(&self, queue: &Name) -> Result<PurgedQueue, AdminError> {
        known(queue, &self.survey().await?)?;
        let Purged { removed, .. } = self.empty(queue, false).await?;
        let survey = self.survey().await?;
        let (in_flight, failed) = books(queue, &survey).map_or((0, 0), |books| (books.in_flight, books.failed));
        Ok(PurgedQueue { queue: queue.clone(), removed, in_flight, failed })
    }

    /// Forgets a queue: its messages, failed ones too, its results, its idempotency keys, the names of its imports, and
    /// whether it was paused. Its last id is kept, so that a later push to the name goes on counting. The sources that feed
    /// it keep their places. A node that died without leaving is waited for until its lease is over.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue; [`AdminError::QueueInUse`] while a live node works for it or
    /// feeds it, [`AdminError::InFlight`] while messages of it are in flight: nothing is removed then, unless they came
    /// after the first look.
    pub async fn remove_queue(&self, queue: &Name) -> Result<RemovedQueue, AdminError> {
        let survey = self.survey().await?;
        known(queue, &survey)?;
        let feeding = survey.sources.iter().filter(|it| it.queue == *queue && (it.ended || !it.cursor.is_empty()));
        let sources = feeding.map(|it| it.name.clone()).collect();
        let mut gone = RemovedQueue { queue: queue.clone(), removed: 0, failed: 0, sources };
        let mut attempts = 0;
        loop {
            let refusal = match self.ask_at_length(RemoveQueue { queue: queue.clone() }).await {
                Ok(()) => return Ok(gone),
                Err(StoreError::Refused(refusal)) => refusal,
                Err(error) => return Err(error.into()),
            };
            match refusal {
                Refusal::QueueInUse { session, .. } => {
                    if let Some(by) = self.outlive(session).await? {
                        let survey = self.survey().await?;
                        let of_queue = live_nodes(&survey).filter(|it| it.queues.contains(queue));
                        let mut nodes: Vec<Whereabouts> = of_queue.map(Whereabouts::of).collect();
                        if !nodes.contains(&by) {
                            nodes.push(by);
                        }
                        return Err(AdminError::QueueInUse { queue: queue.clone(), nodes });
                    }
                }
                Refusal::QueueNotEmpty { .. } if attempts < ATTEMPTS => {
                    attempts += 1;
                    let survey = self.survey().await?;
                    let messages = books(queue, &survey).map_or(0, |books| books.in_flight);
                    if messages > 0 {
                        return Err(AdminError::InFlight { queue: queue.clone(), messages });
                    }
                    let purged = self.empty(queue, true).await?;
                    gone.removed += purged.removed - purged.failed;
                    gone.failed += purged.failed;
                }
                refusal => return Err(StoreError::from(refusal).into()),
            }
        }
    }

    /// Removes what waits in a queue, step by step; what all steps removed.
    async fn empty(&self, queue: &Name, failed: bool) -> Result<Purged, AdminError> {
        let admin = self.apart();
        let emptied = admin.empty_as(queue, failed).await;
        admin.leave().await;
        emptied
    }

    async fn empty_as(&self, queue: &Name, failed: bool) -> Result<Purged, AdminError> {
        let mut session: Session = self.session().await?;
        let (mut upto, mut removed, mut of_failed) = (None, 0, 0);
        loop {
            match self.attend(&session, session.purge(queue.clone(), upto, failed)).await {
                Ok(step) => {
                    removed += step.removed;
                    of_failed += step.failed;
                    upto = Some(step.upto);
                    if !step.left {
                        return Ok(Purged { removed, failed: of_failed, ..step });
                    }
                }
                // The steps of another session go on where those of this one ended.
                Err(StoreError::Refused(Refusal::Stale)) => session = self.session().await?,
                Err(StoreError::Refused(Refusal::RemovalBusy { holder })) => {
                    if let Some(by) = self.outlive(holder).await? {
                        return Err(AdminError::RemovalRunning { queue: queue.clone(), by });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn known(queue: &Name, survey: &Survey) -> Result<(), Unknown> {
    Unknown::queue(queue, survey).map_or(Ok(()), Err)
}

fn books<'a>(queue: &Name, survey: &'a Survey) -> Option<&'a Books> {
    survey.queues.iter().find(|books| books.queue == *queue)
}
