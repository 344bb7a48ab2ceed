//! `baton kill`: stops the nodes of the fleet, and waits until they have gone.

use std::time::Duration;

use baton::settings::quantity;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural},
    settings::Settings,
};

/// Stop all nodes that are running now, and wait until they are gone
///
/// Nodes finish what runs and hand the rest back; after --grace they hand back everything and leave at once. Nodes
/// started after the order are not concerned. Exit code 1 names those that are still there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton kill
  baton kill --grace 1m
  baton kill --now --json")]
pub(crate) struct Kill {
    /// Do not let them finish what runs
    #[arg(long)]
    now: bool,
    /// How long they may take to finish what runs
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    grace: Duration,
    /// Print one JSON object: {"stopped","at_once","survivors"}
    #[arg(long)]
    json: bool,
}

impl Kill {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let grace = (!self.now).then_some(self.grace);
        let stopped = connection.given(connection.operator.stop(grace).await)?;
        let left = stopped.survivors.len() as u64;
        let exit = Output::print(self.json, &stopped, |output| match stopped.stopped as u64 {
            _ if left > 0 => Ok(()),
            0 => output.line("no node is running"),
            count => output.line(&format!("stopped {count} node{}", plural(count))),
        })?;
        if left == 0 {
            return Ok(exit);
        }
        let names = stopped.survivors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(Failure::new(format!("{left} node{} did not stop: {names}", plural(left)), "end them by hand"))
    }
}
