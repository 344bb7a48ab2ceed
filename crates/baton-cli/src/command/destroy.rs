//! `baton destroy`: removes all a fleet has stored.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural},
    settings::Settings,
};

/// Remove everything the fleet has stored; refused while a node is alive
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton destroy
  baton --fleet test destroy --yes --json")]
pub(crate) struct Destroy {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object: {"fleet","store","destroyed","queues","messages","errors"}; destroyed is
    /// false if there was nothing to remove, or another destruction was quicker
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Destroyed {
    fleet: String,
    store: String,
    #[serde(flatten)]
    was: baton::admin::Destroyed,
}

impl Destroy {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        if !self.yes {
            confirm(settings)?;
        }
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let was = connection.given(connection.admin.destroy().await)?;
        let (fleet, store) = (settings.fleet.value.to_string(), settings.store.value.to_string());
        let destroyed = Destroyed { fleet, store, was };
        Output::print(self.json, &destroyed, |output| {
            let baton::admin::Destroyed { removed, queues, messages, errors } = was;
            if !removed {
                let (fleet, store) = (&destroyed.fleet, &destroyed.store);
                return output
                    .line(&format!("there is no fleet {fleet} in {store}, or another destruction was quicker"));
            }
            let s = (plural(queues), plural(messages), plural(errors));
            output.line(&format!(
                "removed fleet {} from {}: {queues} queue{}, {messages} waiting message{}, {errors} error{}",
                destroyed.fleet, destroyed.store, s.0, s.1, s.2
            ))
        })
    }
}

/// Asks the person at the terminal; without one, the flag has to be given.
fn confirm(settings: &Settings) -> Result<(), Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage("destroy removes all data of the fleet and nobody can be asked", "add --yes"));
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
