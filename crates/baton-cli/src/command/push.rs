//! `baton push`: messages from the command line, from files and from standard input.

use std::{ffi::OsString, path::PathBuf};

use baton::message::{Key, Name};

use crate::{
    exit::{Exit, Failure},
    output::{Output, plural},
    push::{self, Inputs, Job},
    quantity,
    settings::Settings,
};

/// Push messages: each argument is a JSON body, `-` reads one body a line from standard input
///
/// Blank lines are skipped. A body that is not JSON, or is over the limit, ends the push with exit code 1 and its
/// line number. While the queue is full or the store has no room, push waits, for --wait seconds at most.
///
/// With --key the store remembers under that key how far the input was taken, in the same step as it takes the
/// messages: run the same command again after any interruption and every line exists exactly once. Other input under
/// the same key is refused, and so is another queue. Ctrl-C tells how many lines are stored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton push 1 '\"two\"' '{\"n\":3}'
  seq 1000000 | baton push -
  baton push --file jobs.ndjson --queue resize --key jobs-2031-06")]
pub(crate) struct Push {
    /// JSON bodies; `-` for lines from standard input
    #[arg(value_name = "BODY", allow_negative_numbers = true)]
    bodies: Vec<OsString>,
    /// Push the lines of this file; may be given several times
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// The queue to push to
    #[arg(long, value_name = "NAME", default_value = "messages")]
    queue: Name,
    /// Push each line exactly once, however often the command is run under this key; a key stands for one input into
    /// one queue
    #[arg(long, value_name = "KEY")]
    key: Option<Key>,
    /// The largest body taken, up to 32MiB
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = quantity::body_bytes)]
    max_body: usize,
    /// Wait while the queue holds more than this [default: 4GiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes)]
    max_backlog: Option<u64>,
    /// Print one JSON object: {"pushed","duplicates","first_id","last_id","queue"}
    #[arg(long)]
    json: bool,
}

impl Push {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let inputs = Inputs::open(self.bodies, self.file, self.max_body)?;
        let job = Job { queue: self.queue, key: self.key, max_body: self.max_body, max_backlog: self.max_backlog };
        let receipt = push::push(settings, inputs, job).await?;
        let mut output = Output::new();
        if self.json {
            output.json(&receipt)?;
        } else {
            let ids = match (receipt.first_id, receipt.last_id) {
                (Some(first), Some(last)) if first == last => format!(" (id {first})"),
                (Some(first), Some(last)) => format!(" (ids {first} to {last})"),
                _ => String::new(),
            };
            let skipped = match receipt.duplicates {
                0 => String::new(),
                count => format!(", {count} line{} had been pushed before", plural(count)),
            };
            let count = receipt.pushed;
            output.line(&format!("pushed {count} message{} to {}{ids}{skipped}", plural(count), receipt.queue))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}
