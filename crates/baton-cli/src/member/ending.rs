//! When a queue is done: its sources have ended and nothing is left in it.

use std::time::Duration;

use baton::{
    message::Name,
    store::{Survey, TakeSurvey},
};

use crate::connection::Connection;

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Waits until the queue is done, through every outage of the store; the messages then in the error registry.
pub(super) async fn done(connection: &Connection, queue: &Name, source: Option<&Name>) -> u64 {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let survey = connection.fleet().ask(TakeSurvey).await;
        if let Some(dead) = survey.ok().and_then(|survey| dead_if_done(&survey, queue, source)) {
            return dead;
        }
    }
}

/// The errors of the queue if it is done. A member that offers a source waits for that one too.
fn dead_if_done(survey: &Survey, queue: &Name, source: Option<&Name>) -> Option<u64> {
    let mut feeding = survey.sources.iter().filter(|it| it.queue == *queue).peekable();
    feeding.peek()?;
    if let Some(source) = source {
        survey.sources.iter().find(|it| it.name == *source)?;
    }
    let ended = feeding.all(|it| it.ended);
    let books = survey.queues.iter().find(|it| it.queue == *queue);
    let left = books.map_or(0, |it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight));
    (ended && left == 0).then(|| books.map_or(0, |it| it.dead))
}
