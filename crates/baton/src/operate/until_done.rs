//! When work is done: its source has ended, and nothing is left in its queue.

use std::time::Duration;

use super::{Operator, Overview, QueueState};
use crate::{
    message::Name,
    store::{Survey, TakeSurvey},
};

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Why nothing happens to a queue that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldUp {
    /// It is paused.
    Paused,
    /// No live node works for it.
    Unattended,
}

impl HeldUp {
    /// What holds a queue up, if anything does.
    fn of(queue: &QueueState) -> Option<Self> {
        match queue.paused {
            true => Some(Self::Paused),
            false => queue.is_unattended().then_some(Self::Unattended),
        }
    }
}

impl Operator {
    /// Waits until nothing is left in the queue and the source, if one is named, has ended, through every outage of the
    /// store; the messages then among the errors, whenever they died. Other sources are not waited for: they may
    /// never end. `held_up` is called each time the queue comes to be held up: nothing else would tell why nothing happens.
    pub async fn until_done(&self, queue: &Name, source: Option<&Name>, mut held_up: impl FnMut(HeldUp)) -> u64 {
        let mut before = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Ok(survey) = self.fleet.ask(TakeSurvey).await else { continue };
            if let Some(dead) = dead_if_done(&survey, queue, source) {
                return dead;
            }
            let now = Overview::of(&survey).queues.iter().find(|it| it.name == *queue).and_then(HeldUp::of);
            if let Some(why) = now.filter(|_| now != before) {
                held_up(why);
            }
            before = now;
        }
    }
}

/// The errors of the queue if the work is done.
fn dead_if_done(survey: &Survey, queue: &Name, source: Option<&Name>) -> Option<u64> {
    let has_ended = |source: &Name| survey.sources.iter().any(|it| it.name == *source && it.ended);
    let books = survey.queues.iter().find(|it| it.queue == *queue);
    let left = books.map_or(0, |it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight));
    (source.is_none_or(has_ended) && left == 0).then(|| books.map_or(0, |it| it.dead))
}
