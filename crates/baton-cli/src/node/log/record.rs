//! A line of the log as data: what `--log json` prints, and what a worker hands to its `up`.

use baton::{Event, Level};
use serde::{Deserialize, Serialize};

/// The name of lines that a child or a worker printed.
pub(super) const OUTPUT: &str = "output";
/// The name of failed attempts.
pub(super) const FAILED: &str = "message-failed";

/// One line. The names of its fields are stable; those that do not apply are left out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// When it was written: RFC 3339, UTC.
    #[serde(skip_deserializing)]
    pub(super) time: String,
    pub(super) level: Level,
    /// What kind of event it is; remarks of the command have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<String>,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fleet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// The number of the worker of `up` that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    /// The id of the message in its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    /// The number of the child that printed it, if it had no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
    /// Why, in full; `message` has the first line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// When the next attempt is due; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
    /// How many more lines like this one were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<u64>,
}

impl Record {
    pub(super) fn new(level: Level, message: &str) -> Self {
        Self {
            time: String::new(),
            level,
            event: None,
            message: message.to_owned(),
            fleet: None,
            session: None,
            worker: None,
            queue: None,
            id: None,
            child: None,
            source: None,
            attempt: None,
            error: None,
            retry_after_ms: None,
            more: None,
        }
    }

    /// What happened to a node.
    pub(super) fn of(event: &Event) -> Self {
        let mut record = Self { event: Some(event.name().to_owned()), ..Self::new(event.level(), &event.to_string()) };
        match event {
            Event::Joined { session, host, pid } => {
                record.message = format!("joined as {host}/{pid}");
                record.session = Some(session.to_string());
            }
            Event::MessageFailed { queue, id, attempt, error, retry_after } => {
                if retry_after.is_none() {
                    record.message.push_str(&format!("; see `baton errors {queue}`"));
                }
                record.retry_after_ms = retry_after.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
                record.error = Some(error.clone());
                (record.queue, record.id, record.attempt) = (Some(queue.to_string()), Some(id.0), Some(*attempt));
            }
            Event::ResultLeftOut { queue, id, .. } => {
                (record.queue, record.id) = (Some(queue.to_string()), Some(id.0));
            }
            Event::NoRoom { queue, .. } | Event::RunsRefused { queue, .. } | Event::RunsLost { queue, .. } => {
                record.queue = Some(queue.to_string());
            }
            Event::SourceFailed { source, error, .. } => {
                (record.source, record.error) = (Some(source.to_string()), Some(error.to_string()));
            }
            Event::BatonTaken { source, queue, .. }
            | Event::Pushed { source, queue, .. }
            | Event::PushRefused { source, queue, .. } => {
                (record.source, record.queue) = (Some(source.to_string()), Some(queue.to_string()));
            }
            Event::SourceEnded { source, .. } | Event::BatonPassed { source, .. } => {
                record.source = Some(source.to_string());
            }
            _ => {}
        }
        record
    }

    pub(super) fn is(&self, event: &str) -> bool {
        self.event.as_deref() == Some(event)
    }

    /// Who speaks, if that is not this process: a worker, a message's program.
    pub(super) fn speaker(&self) -> String {
        let worker = self.worker.map(|worker| format!("worker {worker}"));
        if !self.is(OUTPUT) || self.more.is_some() {
            return worker.map(|worker| format!("{worker}: ")).unwrap_or_default();
        }
        let program = match (&self.queue, self.id, self.child) {
            (Some(queue), Some(id), _) => Some(format!("{queue}/{id}")),
            (Some(queue), None, Some(child)) => Some(format!("{queue} child {child}")),
            (queue, ..) => queue.clone(),
        };
        let speaker = worker.into_iter().chain(program).collect::<Vec<_>>().join(": ");
        if speaker.is_empty() { speaker } else { format!("{speaker} | ") }
    }
}
