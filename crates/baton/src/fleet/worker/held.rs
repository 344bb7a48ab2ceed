//! What slots hold, what they bring when they come, and what they get.

use std::{sync::Arc, time::Duration};

use futures_util::future::AbortHandle;
use tokio::time::Instant;

use super::{
    mode::Stretch,
    prefetched::{Assigned, Position},
};
use crate::message::{MessageId, Run};

/// A slot as the buffer knows it.
pub(super) struct Entry {
    pub(super) abort: AbortHandle,
    pub(super) holds: Holds,
}

/// What a slot holds.
pub(super) enum Holds {
    /// It has not come yet.
    NotHere,
    Nothing,
    One {
        claim_no: u64,
        id: MessageId,
    },
    Handful {
        assigned: Assigned,
        position: Arc<Position>,
    },
}

/// What a slot has completed when it comes.
#[derive(Default)]
pub(super) struct Completed {
    pub(super) runs: Vec<Run>,
    /// Messages that ended.
    pub(super) ended: usize,
    /// Whether one of them was a suspect.
    pub(super) suspect: bool,
    /// Those that were run inline, once they were timed.
    pub(super) inline: Option<Stretch>,
    /// One that was run in a task: whether it was ready at once, and the time it took.
    pub(super) in_a_task: Option<(bool, Duration)>,
    /// When it last looked at the clock.
    pub(super) now: Option<Instant>,
}

/// What a slot gets.
pub(super) enum Assignment {
    /// Messages to run inline; timed, if it is on trial.
    Handful { assigned: Assigned, on_trial: bool },
    /// A message to run in the slot's task.
    One(Assigned),
    /// Nothing yet: others first.
    Rest,
    /// Nothing: it ends.
    Nothing,
}
