//! `baton status`: who is alive, who holds which baton, how deep the queues are.

use std::time::Duration;

use baton::admin::{NodeState, Overview, QueueState, SourceState};

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    output::{Ink, Output, span},
    settings::Settings,
};

/// Print the live nodes, the sources with their holders, and the depth of each queue
///
/// A node's role is its present one. A generator holds the baton, the lease of a source, and runs this source for the
/// whole fleet; it may work too. Every other node is a worker. A source without a holder goes to the next node that offers
/// it. "failed" gives the reason why a live node does not run a source that it offers. The nodes of a queue are those that
/// work for it. Messages in flight are at these nodes: they run, or were fetched ahead.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton status
  baton status --json | jq '.nodes | length'")]
pub(crate) struct Status {
    /// Print one JSON object: {"nodes","sources","queues"}
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::to_fleet(settings, self.json).await?;
        let overview = connection.given(connection.admin.overview().await)?;
        Output::print(self.json, &overview, |output| show(settings, &overview, output))
    }
}

fn show(settings: &Settings, overview: &Overview, output: &mut Output) -> Result<(), Failure> {
    let node = |it: &NodeState| {
        let queues: Vec<&str> = it.queues.iter().map(|queue| queue.as_str()).collect();
        vec![
            format!("{}/{}", it.host, it.pid),
            it.role.to_owned(),
            queues.join(","),
            span(Duration::from_millis(it.age_ms)),
            format!("{} ago", span(Duration::from_millis(it.last_beat_ms))),
        ]
    };
    let queue = |it: &QueueState| {
        let numbers = [it.ready, it.delayed, it.in_flight, it.done, it.failed].map(|number| number.to_string());
        let remarks = [(it.paused, "paused"), (it.is_unattended(), "no node works for it")];
        let remarks: Vec<&str> = remarks.into_iter().filter_map(|(holds, remark)| holds.then_some(remark)).collect();
        let (nodes, remarks) = (it.nodes.to_string(), remarks.join(", "));
        [it.name.to_string()].into_iter().chain(numbers).chain([nodes, remarks]).collect()
    };
    let rows: Vec<_> = overview.nodes.iter().map(node).collect();
    let none = format!("no node of fleet {} is running in {}", settings.fleet.value, settings.store.value);
    table(output, &none, &["node", "role", "queues", "age", "beat"], &rows)?;
    show_sources(overview, output)?;
    let rows: Vec<_> = overview.queues.iter().map(queue).collect();
    table(output, "no queues", &["queue", "ready", "delayed", "in flight", "done", "failed", "nodes", ""], &rows)
}

pub(super) fn show_sources(overview: &Overview, output: &mut Output) -> Result<(), Failure> {
    let source = |it: &SourceState| {
        let holder = overview.nodes.iter().find(|node| Some(node.session) == it.holder);
        vec![
            it.name.to_string(),
            it.queue.to_string(),
            holder.map_or_else(|| "none".to_owned(), |node| format!("{}/{}", node.host, node.pid)),
            it.epoch.to_string(),
            it.cursor.clone(),
            match &it.failed {
                Some(why) => format!("failed: {why}"),
                None if it.ended => "ended".to_owned(),
                None => String::new(),
            },
        ]
    };
    let rows: Vec<_> = overview.sources.iter().map(source).collect();
    table(output, "no sources", &["source", "queue", "holder", "epoch", "cursor", ""], &rows)
}

fn table(output: &mut Output, none: &str, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    if rows.is_empty() { output.line(&output.paint(Ink::Faint, none)) } else { output.table(head, rows) }
}
