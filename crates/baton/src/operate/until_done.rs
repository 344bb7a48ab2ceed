//! When work is done: its source has ended, and nothing is left in its queue.

use std::time::Duration;

use super::Operator;
use crate::{
    message::Name,
    store::{Survey, TakeSurvey},
};

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Operator {
    /// Waits until nothing is left in the queue and the source, if one is named, has ended, through every outage of the
    /// store; the messages then among the errors, whenever they died. Other sources are not waited for: they may
    /// never end. `paused` is called each time the queue is met held back: nothing else would tell why nothing happens.
    pub async fn until_done(&self, queue: &Name, source: Option<&Name>, mut paused: impl FnMut()) -> u64 {
        let mut was_paused = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Ok(survey) = self.fleet.ask(TakeSurvey).await else { continue };
            if let Some(dead) = dead_if_done(&survey, queue, source) {
                return dead;
            }
            let is_paused = survey.queues.iter().any(|it| it.queue == *queue && it.paused);
            if is_paused && !was_paused {
                paused();
            }
            was_paused = is_paused;
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
