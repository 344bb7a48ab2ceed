//! What `tracing` gets of a node, under the target `baton`: each [`Event`] with its fields, and three spans.
//!
//! A span `session` holds all that a node does between joining and leaving; in it are a span `work` for each queue, in
//! which handlers run, and a span `generate` for each baton, in which sources are opened and pulled. There is none for a
//! message: it would cost more than many handlers do.

use tracing::{Span as TraceSpan, info_span};

use super::event::Event;
use crate::{
    level::trace_at,
    message::{Name, SessionId},
};

/// Writes an event at its level. What happens to stores is written where they tell it.
pub(super) fn write(event: &Event) {
    let level = event.level();
    match event {
        Event::Joined { session, host, pid } => trace_at!(level, %session, host, pid, "{event}"),
        Event::Left { session } => trace_at!(level, %session, "{event}"),
        Event::SessionOver { session } | Event::LeftUnheard { session } | Event::StoreRenewed { session } => {
            trace_at!(level, %session, "{event}");
        }
        Event::NodeDied { node, silent, back, failed } => {
            let (silent, back) = (silent.map(|it| it.as_secs_f64()), back.iter().map(|(_, count)| count).sum::<u64>());
            trace_at!(level, node, silent, back, failed, "{event}");
        }
        Event::StopOrdered { at_once } => trace_at!(level, at_once, "{event}"),
        Event::StoreAway { error } => trace_at!(level, %error, "{event}"),
        Event::StoreFull { error } => trace_at!(level, %error, "{event}"),
        Event::StoreTakes { after } => trace_at!(level, after = after.as_secs_f64(), "{event}"),
        Event::StoreBack { after } => trace_at!(level, after = after.as_secs_f64(), "{event}"),
        Event::BatonTaken { session, source, queue, epoch, cursor } => {
            trace_at!(level, %session, %source, %queue, epoch, cursor, "{event}");
        }
        Event::Pushed { source, queue, epoch, batch_no, from, to, count, first, duplicate } => {
            trace_at!(level, %source, %queue, epoch, batch_no, from, to, count, first, duplicate, "{event}");
        }
        Event::PushRefused { source, queue, epoch, batch_no, refusal } => {
            trace_at!(level, %source, %queue, epoch, batch_no, error = %refusal, "{event}");
        }
        Event::SourceEnded { source, epoch } | Event::BatonPassed { source, epoch } => {
            trace_at!(level, %source, epoch, "{event}");
        }
        Event::SourceFailed { source, epoch, error } => trace_at!(level, %source, epoch, %error, "{event}"),
        Event::MessageFailed { queue, id, attempt, error, retry_after } => {
            let retry_after = retry_after.map(|after| after.as_secs_f64());
            trace_at!(level, %queue, id = id.0, attempt, error, retry_after, "{event}");
        }
        Event::ResultLeftOut { queue, id, bytes } => trace_at!(level, %queue, %id, bytes, "{event}"),
        Event::NoRoom { queue, messages } => trace_at!(level, %queue, messages, "{event}"),
        Event::RunsRefused { queue, runs, messages } => trace_at!(level, %queue, runs, messages, "{event}"),
        Event::RunsLost { queue, messages } => trace_at!(level, %queue, messages, "{event}"),
        Event::ObserverPanicked { error } => trace_at!(level, error, "{event}"),
        Event::Store(_) => {}
    }
}

/// What a node does during one session.
pub(super) fn session(session: SessionId) -> TraceSpan {
    info_span!(target: "baton", "session", %session)
}

/// The work on one queue.
pub(super) fn work(queue: &Name) -> TraceSpan {
    info_span!(target: "baton", "work", %queue)
}

/// The work on one source.
pub(super) fn generate(source: &Name, epoch: u64) -> TraceSpan {
    info_span!(target: "baton", "generate", %source, epoch)
}
