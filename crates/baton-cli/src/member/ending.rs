//! When a member's work is done: the source it names has ended, and nothing is left in its queue.

use std::time::Duration;

use baton::{
    message::Name,
    store::{Survey, TakeSurvey},
};

use super::Log;
use crate::{connection::Connection, output::plural};

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Waits until the work is done, through every outage of the store; the messages then in the error registry, whenever
/// they died. Sources that others name are not waited for: they may never end. A pause of the queue is told each time
/// it is met: nothing else would tell why nothing happens.
pub(super) async fn done(connection: &Connection, queue: &Name, source: Option<&Name>, log: &Log) -> u64 {
    let mut was_paused = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Ok(survey) = connection.fleet().ask(TakeSurvey).await else { continue };
        if let Some(dead) = dead_if_done(&survey, queue, source) {
            return dead;
        }
        let is_paused = survey.queues.iter().any(|it| it.queue == *queue && it.paused);
        if is_paused && !was_paused {
            log.say(&format!("queue {queue} is paused; `baton resume {queue}` lets it go on"));
        }
        was_paused = is_paused;
    }
}

/// Tells how it ended.
pub(super) fn tell(queue: &Name, dead: u64, log: &Log) {
    match dead {
        0 => log.line("done: nothing is left"),
        _ => log.say(&format!("done, but {dead} message{} failed; see `baton errors --queue {queue}`", plural(dead))),
    }
}

/// The errors of the queue if the work is done.
fn dead_if_done(survey: &Survey, queue: &Name, source: Option<&Name>) -> Option<u64> {
    let has_ended = |source: &Name| survey.sources.iter().any(|it| it.name == *source && it.ended);
    let books = survey.queues.iter().find(|it| it.queue == *queue);
    let left = books.map_or(0, |it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight));
    (source.is_none_or(has_ended) && left == 0).then(|| books.map_or(0, |it| it.dead))
}
