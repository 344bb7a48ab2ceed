//! `baton purge`: removes all a fleet has stored.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    time::Duration,
};

use baton::{
    message::SessionId,
    store::{Kind, Refusal, SessionView, StoreError, Survey, TakeSurvey},
};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, tame},
    settings::Settings,
};

/// How often it is looked whether the leftovers of dead nodes are gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long after the longest lease the leftovers must be gone.
const GRACE: Duration = Duration::from_secs(2);

/// Remove everything the fleet has stored; refused while a node is alive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton purge
  baton --fleet test purge --yes --json")]
pub(crate) struct Purge {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object: {"purged","fleet","store","queues","messages","errors"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Purged {
    purged: bool,
    fleet: String,
    store: String,
    queues: usize,
    /// Waiting or in flight.
    messages: u64,
    /// In the error registry.
    errors: u64,
}

impl Purge {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if !self.yes {
            confirm(settings)?;
        }
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let survey = connection.ask(TakeSurvey).await?;
        let cleared = clear(&connection).await;
        connection.leave().await;
        cleared?;
        let sum = |pick: fn(&baton::store::Books) -> u64| survey.queues.iter().map(pick).fold(0, u64::saturating_add);
        let purged = Purged {
            purged: true,
            fleet: settings.fleet.value.to_string(),
            store: settings.store.value.to_string(),
            queues: survey.queues.len(),
            messages: sum(|it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight)),
            errors: sum(|it| it.dead),
        };
        let mut output = Output::new();
        if self.json {
            output.json(&purged)?;
        } else {
            let Purged { fleet, store, queues, messages, errors, .. } = purged;
            let s = (plural(queues as u64), plural(messages), plural(errors));
            output.line(&format!(
                "removed fleet {fleet} from {store}: {queues} queue{}, {messages} waiting message{}, {errors} error{}",
                s.0, s.1, s.2
            ))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}

/// Asks the person at the terminal; without one, the flag has to be given.
fn confirm(settings: &Settings) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage("purge removes all data of the fleet and nobody can be asked", "add --yes"));
    }
    let (fleet, store) = (&settings.fleet.value, &settings.store.value);
    let mut stderr = io::stderr();
    write!(stderr, "Remove all messages, errors and positions of fleet {fleet} in {store}? [y/N] ").ok();
    stderr.flush().ok();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).ok();
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new("not confirmed: nothing was removed", "answer y, or add --yes")),
    }
}

/// Purges; nodes that died without leaving are waited for until their leases are over.
pub(crate) async fn clear(connection: &Connection) -> Result<(), Failure> {
    let failure = |error: &StoreError| connection.failure(error);
    match connection.ask_at_length(baton::store::Purge).await {
        Err(StoreError::Refused(Refusal::NodesAlive { .. })) => {}
        purged => return purged.map_err(|error| failure(&error)),
    }
    // The beats of a session move the fleet's clock on and reap those whose lease is over.
    connection.session().await?;
    let first = connection.ask(TakeSurvey).await?;
    let beats: BTreeMap<SessionId, u64> = nodes(&first).map(|node| (node.session, node.beat_ms)).collect();
    let longest = nodes(&first).map(|node| node.lease_ms).max().unwrap_or(0);
    let deadline = Instant::now() + Duration::from_millis(longest) + GRACE;
    loop {
        let survey = connection.ask(TakeSurvey).await?;
        let live: Vec<&SessionView> =
            nodes(&survey).filter(|node| beats.get(&node.session).is_none_or(|beat| node.beat_ms > *beat)).collect();
        if !live.is_empty() || (Instant::now() > deadline && nodes(&survey).next().is_some()) {
            let live = if live.is_empty() { nodes(&survey).collect() } else { live };
            return Err(refusal(&live));
        }
        if nodes(&survey).next().is_none() {
            // Left first, so that nothing is written by this visitor after the data is gone.
            connection.leave().await;
            return match connection.ask_at_length(baton::store::Purge).await {
                Err(StoreError::Refused(Refusal::NodesAlive { .. })) => {
                    let survey = connection.ask(TakeSurvey).await?;
                    Err(refusal(&nodes(&survey).collect::<Vec<_>>()))
                }
                purged => purged.map_err(|error| failure(&error)),
            };
        }
        connection.session().await?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn nodes(survey: &Survey) -> impl Iterator<Item = &SessionView> {
    survey.sessions.iter().filter(|session| session.kind == Kind::Node)
}

fn refusal(live: &[&SessionView]) -> Failure {
    const SHOWN: usize = 5;
    let mut names: Vec<String> =
        live.iter().take(SHOWN).map(|node| format!("{}/{}", tame(&node.host), node.pid)).collect();
    if live.len() > SHOWN {
        names.push(format!("{} more", live.len() - SHOWN));
    }
    let count = live.len() as u64;
    Failure::new(format!("{count} node{} of this fleet alive: {}", plural(count), names.join(", ")), "stop them first")
}
