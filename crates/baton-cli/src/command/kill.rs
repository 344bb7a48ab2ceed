//! `baton kill`: stops the nodes of the fleet, and waits until they have gone.

use std::time::Duration;

use baton::{operate::Whereabouts, settings::quantity};

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, remark},
    settings::Settings,
};

/// Stop all nodes that are running now, and wait until they are gone
///
/// Nodes finish what runs and hand the rest back; after --grace they hand back everything and leave at once. Nodes
/// started after the order are not concerned. Exit code 1 names those that are still there. One that did not answer, and
/// whose lease has run out meanwhile, is named too: what it held is others', but its process may still live.
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
    /// Print one JSON object: {"stopped","at_once","survivors","unanswered"}
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
            0 if stopped.unanswered.is_empty() => output.line("no node is running"),
            count => output.line(&format!("stopped {count} node{}", plural(count))),
        })?;
        if !stopped.unanswered.is_empty() {
            let (count, names) = (stopped.unanswered.len() as u64, listed(&stopped.unanswered));
            let theirs = if count == 1 { "its process" } else { "their processes" };
            remark(&format!("{count} node{} did not answer in time; {theirs} may still live: {names}", plural(count)));
        }
        if left == 0 {
            return Ok(exit);
        }
        let names = listed(&stopped.survivors);
        Err(Failure::new(format!("{left} node{} did not stop: {names}", plural(left)), "end them by hand"))
    }
}

fn listed(nodes: &[Whereabouts]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
