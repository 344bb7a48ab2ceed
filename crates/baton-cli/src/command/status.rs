//! `baton status`: who is alive, who holds which baton, how deep the queues are.

use std::time::Duration;

use baton::store::{Kind, SessionView, Survey, TakeSurvey};
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Ink, Output, span, table, tame},
    settings::Settings,
};

/// Print the live nodes, the sources with their baton holders, and the queue depths
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

#[derive(Serialize)]
pub(super) struct Fleet {
    nodes: Vec<Node>,
    pub(super) sources: Vec<Source>,
    queues: Vec<Queue>,
}

#[derive(Serialize)]
struct Node {
    session: String,
    host: String,
    pid: u32,
    role: &'static str,
    queues: Vec<String>,
    age_ms: u64,
    /// How long ago.
    last_beat_ms: u64,
}

#[derive(Serialize)]
pub(super) struct Source {
    name: String,
    queue: String,
    holder: Option<String>,
    epoch: u64,
    cursor: String,
    ended: bool,
}

#[derive(Serialize)]
struct Queue {
    name: String,
    ready: u64,
    delayed: u64,
    in_flight: u64,
    done: u64,
    dead: u64,
    paused: bool,
}

impl Status {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let survey = Connection::open(settings, Missing::Refuse, None)?.ask(TakeSurvey).await?;
        let fleet = Fleet::of(&survey);
        let mut output = Output::new();
        if self.json {
            output.json(&fleet)?
        } else {
            fleet.show(&mut output)?
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}

impl Fleet {
    pub(super) fn of(survey: &Survey) -> Self {
        // A session past its lease is there until somebody reaps it; it is no longer a member.
        let live = |session: &&SessionView| {
            session.kind == Kind::Node && survey.now_ms.saturating_sub(session.beat_ms) <= session.lease_ms
        };
        let live: Vec<&SessionView> = survey.sessions.iter().filter(live).collect();
        let nodes = live.iter().map(|it| Node {
            session: it.session.to_string(),
            host: it.host.clone(),
            pid: it.pid,
            role: match survey.sources.iter().any(|source| source.holder == Some(it.session)) {
                true => "generator",
                false => "worker",
            },
            queues: it.queues.iter().map(ToString::to_string).collect(),
            age_ms: survey.now_ms.saturating_sub(it.joined_ms),
            last_beat_ms: survey.now_ms.saturating_sub(it.beat_ms),
        });
        let sources = survey.sources.iter().map(|it| Source {
            name: it.name.to_string(),
            queue: it.queue.to_string(),
            holder: it.holder.filter(|id| live.iter().any(|node| node.session == *id)).map(|id| id.to_string()),
            epoch: it.epoch,
            cursor: it.cursor.clone(),
            ended: it.ended,
        });
        let queues = survey.queues.iter().map(|it| Queue {
            name: it.queue.to_string(),
            ready: it.ready,
            delayed: it.delayed,
            in_flight: it.in_flight,
            done: it.done,
            dead: it.dead,
            paused: it.paused,
        });
        Self { nodes: nodes.collect(), sources: sources.collect(), queues: queues.collect() }
    }

    fn show(&self, output: &mut Output) -> Result<(), Failure> {
        let node = |it: &Node| {
            vec![
                format!("{}/{}", tame(&it.host), it.pid),
                it.role.to_owned(),
                it.queues.join(","),
                span(Duration::from_millis(it.age_ms)),
                format!("{} ago", span(Duration::from_millis(it.last_beat_ms))),
            ]
        };
        let queue = |it: &Queue| {
            let numbers = [it.ready, it.delayed, it.in_flight, it.done, it.dead].map(|number| number.to_string());
            let paused = if it.paused { "paused" } else { "" };
            [it.name.clone()].into_iter().chain(numbers).chain([paused.to_owned()]).collect()
        };
        let rows: Vec<_> = self.nodes.iter().map(node).collect();
        show(output, "no live nodes", &["node", "role", "queues", "age", "beat"], &rows)?;
        self.show_sources(output)?;
        let rows: Vec<_> = self.queues.iter().map(queue).collect();
        show(output, "no queues", &["queue", "ready", "delayed", "in flight", "done", "dead", ""], &rows)
    }

    pub(super) fn show_sources(&self, output: &mut Output) -> Result<(), Failure> {
        let source = |it: &Source| {
            let holder = self.nodes.iter().find(|node| Some(&node.session) == it.holder.as_ref());
            vec![
                it.name.clone(),
                it.queue.clone(),
                holder.map_or_else(|| "nobody".to_owned(), |node| format!("{}/{}", tame(&node.host), node.pid)),
                it.epoch.to_string(),
                tame(&it.cursor),
                if it.ended { "ended" } else { "" }.to_owned(),
            ]
        };
        let rows: Vec<_> = self.sources.iter().map(source).collect();
        show(output, "no sources", &["source", "queue", "holder", "epoch", "cursor", ""], &rows)
    }
}

fn show(output: &mut Output, none: &str, head: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
    if rows.is_empty() {
        return output.line(&output.paint(Ink::Faint, none));
    }
    table(head, rows).iter().try_for_each(|line| output.line(line))
}
