//! `baton errors`: lists failed messages; removes or requeues them if so asked.

use baton::{message::Name, store::Disposal};

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::Output,
    registry::{self, Wanted},
    settings::Settings,
};

/// List the messages that failed for good; remove them with --drain, try them again with --requeue
///
/// With --drain an error is removed only after it was written and flushed: if the run is cut off, some may be printed
/// again by the next one, none is lost. `baton --getErrors` is the same as `baton errors --drain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton errors --limit 10
  baton errors --group
  baton errors --match 'timed out' --requeue
  baton errors --drain --json >> errors.ndjson

JSON, one line an error: {\"id\",\"queue\",\"body\",\"error\",\"attempts\",\"losses\",\"node\",\"at\"}; \
`at` is in milliseconds since 1970.
With --group one object: {\"errors\",\"groups\":[{\"cause\",\"count\",\"queue\",\"example_id\"}]}")]
pub(crate) struct Errors {
    /// Only this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<Name>,
    /// Print them and remove what was printed
    #[arg(long)]
    drain: bool,
    /// Only look, as it is without a flag
    #[arg(long, hide = true, conflicts_with_all = ["drain", "requeue"])]
    peek: bool,
    /// Keep waiting for new errors until interrupted
    #[arg(long)]
    follow: bool,
    /// Print them and put them back into their queues
    #[arg(long, conflicts_with = "drain")]
    requeue: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    limit: Option<u64>,
    /// Only errors whose text contains this
    #[arg(long = "match", value_name = "TEXT")]
    containing: Option<String>,
    /// Count by cause, and remove nothing
    #[arg(long, conflicts_with_all = ["follow", "requeue", "drain"])]
    group: bool,
    /// Print JSON, one line an error
    #[arg(long)]
    json: bool,
}

impl Errors {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let wanted = Wanted { queue: self.queue, limit: self.limit, containing: self.containing };
        let mut output = Output::new();
        if self.group {
            registry::group(&connection, &wanted, &mut output, self.json).await?;
        } else {
            let disposal = match (self.drain, self.requeue) {
                (true, _) => Some(Disposal::Drain),
                (_, true) => Some(Disposal::Requeue),
                _ => None,
            };
            registry::print(&connection, &wanted, disposal, self.follow, &mut output, self.json).await?;
        }
        Ok(Exit::Ok)
    }
}
