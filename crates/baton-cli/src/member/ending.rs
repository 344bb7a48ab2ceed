//! When a member's work is done: the source it names has ended, and nothing is left in its queue.

use std::time::Duration;

use baton::{
    message::Name,
    store::{Survey, TakeSurvey},
};

use crate::connection::Connection;

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Waits until the work is done, through every outage of the store; the messages then in the error registry, whenever
/// they died. Sources that others name are not waited for: they may never end.
pub(super) async fn done(connection: &Connection, queue: &Name, source: Option<&Name>) -> u64 {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let survey = connection.fleet().ask(TakeSurvey).await;
        if let Some(dead) = survey.ok().and_then(|survey| dead_if_done(&survey, queue, source)) {
            return dead;
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
