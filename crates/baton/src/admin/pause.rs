//! Claims of a queue stop, or go on.

use serde::Serialize;

use super::{Admin, AdminError, Unknown};
use crate::{message::Name, store::Order};

/// Whether a queue is held back now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Paused {
    /// The queue.
    pub queue: Name,
    /// Whether claims are held back.
    pub paused: bool,
}

impl Admin {
    /// Stops handing out messages of a queue; what runs is finished, and pushes go on. It stays paused through restarts.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue: it would be a queue of that name that nobody means.
    pub async fn pause(&self, queue: &Name) -> Result<Paused, AdminError> {
        self.know(queue).await?;
        self.pause_unseen(queue).await
    }

    /// As [`Admin::pause`], also if no such queue is known yet: it begins paused.
    ///
    /// # Errors
    /// The store's.
    pub async fn pause_unseen(&self, queue: &Name) -> Result<Paused, AdminError> {
        self.ask(Order::Pause(queue.clone())).await?;
        Ok(Paused { queue: queue.clone(), paused: true })
    }

    /// Hands out messages of a paused queue again.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue.
    pub async fn resume(&self, queue: &Name) -> Result<Paused, AdminError> {
        self.know(queue).await?;
        self.ask(Order::Resume(queue.clone())).await?;
        Ok(Paused { queue: queue.clone(), paused: false })
    }

    async fn know(&self, queue: &Name) -> Result<(), AdminError> {
        Ok(Unknown::queue(queue, &self.survey().await?).map_or(Ok(()), Err)?)
    }
}
