//! When work is done: its source has ended, and nothing is left in its queue.

use std::time::Duration;

use tokio::time::Instant;

use super::{Operator, Overview, QueueState};
use crate::{
    message::Name,
    process::Backoff,
    store::{Progress, ReadProgress, TakeSurvey},
};

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How soon, and at last how seldom, it is asked why nothing happens: in a large fleet that costs more.
const WONDER_AFTER: Duration = Duration::from_secs(1);
const WONDER_AT_LAST: Duration = Duration::from_secs(30);

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
        let (mut before, mut last) = (None, None);
        let mut pauses = Backoff::new(WONDER_AFTER, WONDER_AT_LAST);
        let mut wonder_at = Instant::now() + pauses.pause();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let asked = ReadProgress { queue: queue.clone(), source: source.cloned() };
            let Ok(progress) = self.fleet.ask(asked).await else { continue };
            if let Some(dead) = dead_if_done(&progress, source.is_some()) {
                return dead;
            }
            let is_paused = progress.books.as_ref().is_some_and(|books| books.paused);
            if last.as_ref() != Some(&progress) {
                pauses = Backoff::new(WONDER_AFTER, WONDER_AT_LAST);
                wonder_at = Instant::now() + pauses.pause();
                last = Some(progress);
            }
            let now = if is_paused {
                Some(HeldUp::Paused)
            } else if Instant::now() < wonder_at {
                continue;
            } else {
                wonder_at = Instant::now() + pauses.pause();
                let Ok(survey) = self.fleet.ask(TakeSurvey).await else { continue };
                Overview::of(&survey).queues.iter().find(|it| it.name == *queue).and_then(HeldUp::of)
            };
            if let Some(why) = now.filter(|_| now != before) {
                held_up(why);
            }
            before = now;
        }
    }
}

/// The errors of the queue if the work is done.
fn dead_if_done(progress: &Progress, has_source: bool) -> Option<u64> {
    let books = progress.books.as_ref();
    let left = books.map_or(0, |it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight));
    ((progress.ended || !has_source) && left == 0).then(|| books.map_or(0, |it| it.dead))
}
