//! `baton errors`: prints failed messages and removes them, requeues them, or only looks.

use baton::{message::Name, store::Disposal};

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::Output,
    registry::{self, Wanted},
    settings::Settings,
};

/// Print messages that failed for good and remove them, without losing any
///
/// An error is removed only after it was written and flushed: if the run is cut off, some may be printed again by the
/// next one, none is lost. The same as `baton --getErrors`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton errors
  baton errors --json >> errors.ndjson
  baton errors --group
  baton errors --match 'timed out' --requeue
  baton errors --peek --limit 10

JSON, one line an error: {\"id\",\"queue\",\"body\",\"error\",\"attempts\",\"losses\",\"node\",\"at\"}; `at` is in milliseconds
since 1970. With --group one object: {\"errors\",\"groups\":[{\"cause\",\"count\",\"queue\",\"example_id\"}]}")]
pub(crate) struct Errors {
    /// Only this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<Name>,
    /// Only look: remove nothing
    #[arg(long)]
    peek: bool,
    /// Keep waiting for new errors until interrupted
    #[arg(long)]
    follow: bool,
    /// Put them back into their queues instead of removing them
    #[arg(long, conflicts_with = "peek")]
    requeue: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    limit: Option<u64>,
    /// Only errors whose text contains this
    #[arg(long = "match", value_name = "TEXT")]
    containing: Option<String>,
    /// Count by cause, and remove nothing
    #[arg(long, conflicts_with_all = ["follow", "requeue"])]
    group: bool,
    /// Print JSON, one line an error
    #[arg(long)]
    json: bool,
}

impl Errors {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Wait, None)?;
        let wanted = Wanted { queue: self.queue, limit: self.limit, containing: self.containing };
        let mut output = Output::new();
        if self.group {
            registry::group(&connection, &wanted, &mut output, self.json).await?;
        } else {
            let disposal = match (self.peek, self.requeue) {
                (true, _) => None,
                (_, true) => Some(Disposal::Requeue),
                _ => Some(Disposal::Drain),
            };
            registry::print(&connection, &wanted, disposal, self.follow, &mut output, self.json).await?;
        }
        Ok(Exit::Ok)
    }
}
