//! `baton source`: the sources a fleet knows, and how one is forgotten.

use baton::{Name, admin::SourceState};
use serde::Serialize;

use super::status::show_sources;
use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// List the sources the fleet knows, or remove one
///
/// The fleet knows a source from the first node that offers it: its queue, how far it was read, and whether it has ended.
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

/// Print the sources with their queues, holders and cursors
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object: {"sources":[{"name","queue","holder","epoch","cursor","ended","failed"}]}
    #[arg(long)]
    json: bool,
}

/// Remove a source with its cursor and definition; its messages stay
///
/// Refused while a live node offers the source. A new source of the same name begins at the start.
#[derive(Debug, clap::Args)]
struct Removal {
    /// The name of the source
    #[arg(value_name = "NAME")]
    name: Name,
    /// Print one JSON object: {"removed"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Sources<'a> {
    sources: &'a [SourceState],
}

#[derive(Serialize)]
struct Removed {
    removed: Name,
}

impl Source {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        match self.deed {
            Deed::List(list) => {
                let overview = connection.given(connection.admin.overview().await)?;
                let sources = Sources { sources: &overview.sources };
                Output::print(list.json, &sources, |output| show_sources(&overview, output))
            }
            Deed::Remove(Removal { name, json }) => {
                connection.given(connection.admin.remove_source(&name).await)?;
                let line = format!("removed source {name}; what it made stays in its queue");
                Output::print(json, &Removed { removed: name }, |output| output.line(&line))
            }
        }
    }
}
