//! `baton source`: the sources a fleet knows, and how one is forgotten.

use baton::{
    message::Name,
    store::{Refusal, Remove, StoreError, TakeSurvey},
};
use serde::Serialize;

use super::status;
use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    leftover,
    output::{Output, one_of},
    settings::Settings,
};

/// List the sources the fleet knows, or remove one
///
/// A source is known from the first node that offers it on: its queue, how far it was read, whether it has ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton source list
  baton source list --json | jq '.sources[] | select(.ended)'
  baton source remove ticks")]
pub(crate) struct Source {
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Debug, clap::Subcommand)]
enum Deed {
    List(List),
    Remove(Removal),
}

/// Print the sources with their queues, holders and places
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object: {"sources":[{"name","queue","holder","epoch","cursor","ended"}]}
    #[arg(long)]
    json: bool,
}

/// Forget a source: its place, its end and its definition; the messages it made stay
///
/// Refused while a live node offers it. A source of the same name begins at the start again.
#[derive(Debug, clap::Args)]
struct Removal {
    /// The source
    #[arg(value_name = "NAME")]
    name: Name,
    /// Print one JSON object: {"removed"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Sources {
    sources: Vec<status::Source>,
}

#[derive(Serialize)]
struct Removed {
    removed: String,
}

impl Source {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        match self.deed {
            Deed::List(list) => list.run(&connection).await,
            Deed::Remove(removal) => removal.run(&connection).await,
        }
    }
}

impl List {
    async fn run(self, connection: &Connection) -> Result<Exit, Failure> {
        let fleet = status::Fleet::of(&connection.ask(TakeSurvey).await?);
        let mut output = Output::new();
        if self.json {
            output.json(&Sources { sources: fleet.sources })?;
        } else {
            fleet.show_sources(&mut output)?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}

impl Removal {
    async fn run(self, connection: &Connection) -> Result<Exit, Failure> {
        let known: Vec<String> =
            connection.ask(TakeSurvey).await?.sources.iter().map(|it| it.name.to_string()).collect();
        if !known.iter().any(|it| it == self.name.as_str()) {
            let cause = format!("there is no source {} in this fleet{}", self.name, one_of(&known));
            return Err(Failure::new(cause, "name one that is there"));
        }
        self.remove(connection).await?;
        let mut output = Output::new();
        if self.json {
            output.json(&Removed { removed: self.name.to_string() })?;
        } else {
            output.line(&format!("removed source {}; what it made stays in its queue", self.name))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }

    /// Removes it; a node that died without leaving is waited for until its lease is over.
    async fn remove(&self, connection: &Connection) -> Result<(), Failure> {
        loop {
            match connection.ask_at_length(Remove { source: self.name.clone() }).await {
                Err(StoreError::Refused(Refusal::Offered { session, .. })) => {
                    if let Some(node) = leftover::outlive(connection, session).await? {
                        return Err(Failure::new(format!("{node} offers source {}", self.name), "stop it first"));
                    }
                }
                removed => return removed.map_err(|error| connection.failure(&error)),
            }
        }
    }
}
