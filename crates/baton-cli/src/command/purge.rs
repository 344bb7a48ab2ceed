//! `baton purge`: empties a queue, or forgets it.

use baton::{Name, admin::QueueState};
use serde::Serialize;

use crate::{
    confirming::{confirm, somebody_there},
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, remark},
    settings::Settings,
};

/// Remove the messages that wait in a queue
///
/// Messages that are ready, delayed or waiting for a retry are removed. Messages in flight finish and count as usual.
/// Failed messages stay: see `baton errors`. A removed call ends as cancelled. An idempotency key stays in use until it
/// expires. Messages that are pushed meanwhile may be removed too.
///
/// With --remove the queue is forgotten: its failed messages, results, idempotency keys and names of --resume go too, and
/// its line in `baton status`. Its last id is kept, so that ids do not repeat. This is refused while a live node works for
/// the queue or feeds it, and while messages are in flight.
///
/// The sources that feed the queue keep their places: a file that was read is not read again. `baton source remove NAME`
/// starts one over, and so does --rewind where it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton purge mail
  baton purge mail --dry-run
  baton purge mail --yes --json
  baton purge mail --remove")]
pub(crate) struct Purge {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: Name,
    /// Invalidate the queue altogether
    #[arg(long)]
    remove: bool,
    /// Only say what would be removed
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object: {"queue","removed","in_flight","failed"}; with --remove
    /// {"queue","removed","failed","sources"}, where failed messages were removed too, and sources keep their places
    #[arg(long)]
    json: bool,
}

/// What a dry run tells.
#[derive(Serialize)]
struct WouldRemove {
    queue: Name,
    would_remove: u64,
    in_flight: u64,
    failed: u64,
}

impl Purge {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let queue = &self.queue;
        if !self.yes && !self.dry_run {
            let what = if self.remove { "forgets the queue" } else { "removes messages" };
            somebody_there(&format!("purge {what}"))?;
        }
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        if !self.yes {
            let state = connection.given(connection.admin.queue(queue).await)?;
            if self.dry_run {
                return self.tell(&state);
            }
            confirm(&self.question(&state))?;
        }
        if self.remove {
            let removed = connection.given(connection.admin.remove_queue(queue).await)?;
            let printed = Output::print(self.json, &removed, |output| {
                let (waiting, failed) = (counted(removed.removed, "waiting"), counted(removed.failed, "failed"));
                output.line(&format!("removed queue {queue}: {waiting}, {failed}"))
            })?;
            for source in &removed.sources {
                remark(&format!(
                    "source {source} feeds queue {queue} and keeps its place; \
                     `baton source remove {source}` starts it over, or --rewind where it runs"
                ));
            }
            return Ok(printed);
        }
        let purged = connection.given(connection.admin.purge_queue(queue).await)?;
        Output::print(self.json, &purged, |output| {
            let left = left(purged.in_flight, purged.failed);
            output.line(&format!("removed {} of queue {queue}{left}", counted(purged.removed, "waiting")))
        })
    }

    fn question(&self, state: &QueueState) -> String {
        let (queue, waiting) = (&self.queue, counted(state.ready + state.delayed, "waiting"));
        match self.remove {
            true => format!("Invalidate queue {queue} with {waiting} and {}?", counted(state.failed, "failed")),
            false => format!("Remove {waiting} of queue {queue}?"),
        }
    }

    fn tell(&self, state: &QueueState) -> Result<Exit, Failure> {
        let waiting = state.ready + state.delayed;
        let would_remove = if self.remove { waiting + state.failed } else { waiting };
        let QueueState { in_flight, failed, .. } = *state;
        let told = WouldRemove { queue: self.queue.clone(), would_remove, in_flight, failed };
        Output::print(self.json, &told, |output| {
            let queue = &self.queue;
            output.line(&match self.remove {
                true => format!(
                    "would forget queue {queue} with {} and {}",
                    counted(waiting, "waiting"),
                    counted(failed, "failed")
                ),
                false => {
                    format!("would remove {} of queue {queue}{}", counted(waiting, "waiting"), left(in_flight, failed))
                }
            })
        })
    }
}

fn counted(messages: u64, which: &str) -> String {
    format!("{messages} {which} message{}", plural(messages))
}

/// Those that a purge leaves, if there are some.
fn left(in_flight: u64, failed: u64) -> String {
    let parts: Vec<String> = [(in_flight, "in flight"), (failed, "failed")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, which)| format!("{count} {which}"))
        .collect();
    if parts.is_empty() { String::new() } else { format!("; left: {}", parts.join(", ")) }
}
