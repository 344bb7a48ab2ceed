//! `baton stop`: stops the nodes of the fleet, and waits until they have gone.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use baton::{
    admin::{Stopped, Whereabouts},
    settings::quantity,
};
use serde::Serialize;

use crate::{
    confirming::is_agreed,
    connection::Connection,
    exit::{Exit, Failure},
    output::{Output, plural, remark, tame},
    settings::Settings,
};

/// The most nodes that are named in one line.
const NAMED: usize = 8;

/// Stop all nodes of the fleet, and wait until they are gone
///
/// Nodes finish what runs and hand the rest back. After --grace they hand back everything and leave at once. Nodes that
/// start after the order are not stopped.
///
/// The command first says which nodes it stops. On a terminal it asks if some of them work in another folder or on another
/// machine: they may belong to another project that uses the same store.
///
/// Exit code 1 names the nodes that are still there. A node that did not answer is one of them while its process lives,
/// or if it ran on another host, where that is not known. Its messages go to other nodes in any case.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton stop
  baton stop --grace 1m
  baton stop --now --yes --json")]
pub(crate) struct Stop {
    /// Do not let them finish what runs
    #[arg(long)]
    now: bool,
    /// How long they may take to finish what runs
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    grace: Duration,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object: {"fleet","store","stopped","died","at_once","survivors","unanswered"}; nodes in `died` had
    /// ended before the order
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    fleet: &'a str,
    store: String,
    #[serde(flatten)]
    stopped: &'a Stopped,
}

impl Stop {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::to_fleet(settings, self.json).await?;
        let (fleet, store) = (settings.fleet.value.as_str(), settings.store.value.to_string());
        let nodes = connection.given(connection.admin.stoppable().await)?;
        if !nodes.is_empty() {
            let (count, names) = (nodes.len() as u64, listed(&nodes, named));
            let nodes_of_fleet = format!("{count} node{} of fleet {fleet} in {store}", plural(count));
            match question(&nodes).filter(|_| !self.yes) {
                Some(question) => {
                    remark(&format!("would stop {nodes_of_fleet}: {names}"));
                    confirm(&question)?;
                    remark(&format!("stopping {nodes_of_fleet}"));
                }
                None => remark(&format!("stopping {nodes_of_fleet}: {names}")),
            }
        }
        let grace = (!self.now).then_some(self.grace);
        let stopped = connection.given(connection.admin.stop(grace).await)?;
        let (left, unanswered) = (stopped.survivors.len() as u64, stopped.unanswered.len() as u64);
        let died = match stopped.died.len() as u64 {
            0 => String::new(),
            died => format!("; {died} had died before: {}", listed(&stopped.died, ToString::to_string)),
        };
        let report = Report { fleet, store, stopped: &stopped };
        let exit = Output::print(self.json, &report, |output| match stopped.stopped as u64 {
            0 if left + unanswered > 0 => Ok(()),
            0 => output.line(&format!("no node of fleet {fleet} is running in {}{died}", report.store)),
            count => output.line(&format!("stopped {count} node{}{died}", plural(count))),
        })?;
        let unknown = (unanswered > 0).then(|| {
            let names = listed(&stopped.unanswered, ToString::to_string);
            format!(
                "{unanswered} node{} did not answer, and may still live on another host: {names}",
                plural(unanswered)
            )
        });
        if left > 0 {
            unknown.iter().for_each(|it| remark(it));
            let names = listed(&stopped.survivors, ToString::to_string);
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

/// What the person at the terminal is asked if some of the nodes were not started from this folder.
fn question(nodes: &[Whereabouts]) -> Option<String> {
    let elsewhere = nodes.iter().filter(|node| is_elsewhere(node)).count();
    if elsewhere == 0 || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    Some(match nodes.len() {
        1 => "It does not work in this folder. Stop it?".to_owned(),
        all if all == elsewhere => format!("None of them works in this folder. Stop all {all}?"),
        all => format!("Not all of them work in this folder. Stop all {all}?"),
    })
}

fn confirm(question: &str) -> Result<(), Failure> {
    match is_agreed(question) {
        true => Ok(()),
        false => Err(Failure::new("not confirmed: no node was stopped", "answer y, or add --yes")),
    }
}

/// Whether a node works in another folder than this command, or where its folder is not known.
fn is_elsewhere(node: &Whereabouts) -> bool {
    let here = std::env::current_dir().ok();
    node.folder().is_none_or(|folder| here.is_none_or(|here| here != folder))
}

/// A node, and where it works if that is elsewhere.
fn named(node: &Whereabouts) -> String {
    match node.folder() {
        Some(folder) if is_elsewhere(node) => format!("{node} (in {})", tame(&folder.display().to_string())),
        Some(_) => node.to_string(),
        None => format!("{node} (elsewhere)"),
    }
}

fn listed(nodes: &[Whereabouts], name: impl Fn(&Whereabouts) -> String) -> String {
    let mut names: Vec<String> = nodes.iter().take(NAMED).map(name).collect();
    if nodes.len() > NAMED {
        names.push(format!("{} more", nodes.len() - NAMED));
    }
    names.join(", ")
}
