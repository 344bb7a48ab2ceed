//! What `tracing` gets of a node, under the target `baton`: each [`Event`] with its fields, and three spans.
//!
//! A span `session` holds all that a node does between joining and leaving; in it are a span `work` for each queue, in
//! which handlers run, and a span `generate` for each baton, in which sources are opened and pulled. There is none for a
//! message: it would cost more than many handlers do.

use tracing::{Span as TraceSpan, debug, error, info, info_span, warn};

use super::event::Event;
use crate::message::{Name, SessionId};

/// Writes an event. What happens to stores is written where they tell it.
pub(super) fn write(event: &Event) {
    match event {
        Event::Joined { session, host, pid } => info!(target: "baton", %session, host, pid, "{event}"),
        Event::Left { session } => info!(target: "baton", %session, "{event}"),
        Event::SessionOver { session } | Event::LeftUnheard { session } | Event::StoreRenewed { session } => {
            warn!(target: "baton", %session, "{event}");
        }
        Event::StopOrdered { at_once } => info!(target: "baton", at_once, "{event}"),
        Event::StoreAway { error } => warn!(target: "baton", %error, "{event}"),
        Event::StoreFull { error } => warn!(target: "baton", %error, "{event}"),
        Event::StoreTakes { after } => info!(target: "baton", after = after.as_secs_f64(), "{event}"),
        Event::StoreBack { after } => info!(target: "baton", after = after.as_secs_f64(), "{event}"),
        Event::BatonTaken { session, source, queue, epoch, cursor } => {
            info!(target: "baton", %session, %source, %queue, epoch, cursor, "{event}");
        }
        Event::Pushed { source, queue, epoch, batch_no, from, to, count, first, duplicate } => {
            debug!(target: "baton", %source, %queue, epoch, batch_no, from, to, count, first, duplicate, "{event}");
        }
        Event::PushRefused { source, queue, epoch, batch_no, refusal } => {
            debug!(target: "baton", %source, %queue, epoch, batch_no, error = %refusal, "{event}");
        }
        Event::SourceEnded { source, epoch } | Event::BatonPassed { source, epoch } => {
            info!(target: "baton", %source, epoch, "{event}");
        }
        Event::SourceFailed { source, epoch, error } if error.is_for_good() => {
            error!(target: "baton", %source, epoch, %error, "{event}");
        }
        Event::SourceFailed { source, epoch, error } => warn!(target: "baton", %source, epoch, %error, "{event}"),
        Event::MessageFailed { queue, id, attempt, error, retry_after: Some(after) } => {
            debug!(target: "baton", %queue, id = id.0, attempt, error, retry_after = after.as_secs_f64(), "{event}");
        }
        Event::MessageFailed { queue, id, attempt, error, retry_after: None } => {
            warn!(target: "baton", %queue, id = id.0, attempt, error, "{event}");
        }
        Event::ResultLeftOut { queue, id, bytes } => warn!(target: "baton", %queue, %id, bytes, "{event}"),
        Event::NoRoom { queue, messages } => warn!(target: "baton", %queue, messages, "{event}"),
        Event::RunsRefused { queue, runs, messages } => warn!(target: "baton", %queue, runs, messages, "{event}"),
        Event::RunsLost { queue, messages } => warn!(target: "baton", %queue, messages, "{event}"),
        Event::ObserverPanicked { error } => error!(target: "baton", error, "{event}"),
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
