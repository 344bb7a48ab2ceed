//! `baton stop`: stops the nodes of the fleet, and waits until they have gone.

use std::time::Duration;

use baton::{admin::Whereabouts, settings::quantity};

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, remark},
    settings::Settings,
};

/// Stop all nodes that are running now, and wait until they are gone
///
/// Nodes finish what runs and hand the rest back; after --grace they hand back everything and leave at once. Nodes
/// started after the order are not concerned. Exit code 1 names those that are still there. One that did not answer,
/// and whose lease has run out meanwhile, is one of them if its process lives, or if that cannot be told because it ran on
/// another host; what it held is others' all the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton stop
  baton stop --grace 1m
  baton stop --now --json")]
pub(crate) struct Stop {
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

impl Stop {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let grace = (!self.now).then_some(self.grace);
        let stopped = connection.given(connection.admin.stop(grace).await)?;
        let (left, unanswered) = (stopped.survivors.len() as u64, stopped.unanswered.len() as u64);
        let exit = Output::print(self.json, &stopped, |output| match stopped.stopped as u64 {
            0 if left + unanswered > 0 => Ok(()),
            0 => output.line("no node is running"),
            count => output.line(&format!("stopped {count} node{}", plural(count))),
        })?;
        let unknown = (unanswered > 0).then(|| {
            let names = listed(&stopped.unanswered);
            format!(
                "{unanswered} node{} did not answer, and may still live on another host: {names}",
                plural(unanswered)
            )
        });
        if left > 0 {
            unknown.iter().for_each(|it| remark(it));
            let names = listed(&stopped.survivors);
            let them = if left == 1 { "it" } else { "them" };
            let next = format!("end {them} by hand");
            return Err(Failure::new(format!("{left} node{} did not stop: {names}", plural(left)), next));
        }
        match unknown {
            Some(cause) => Err(Failure::new(cause, "look there")),
            None => Ok(exit),
        }
    }
}

fn listed(nodes: &[Whereabouts]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
