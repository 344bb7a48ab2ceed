//! `baton destroy`: removes all a fleet has stored.

use baton::admin::{AdminError, Overview};
use serde::Serialize;

use crate::{
    confirming::{confirm, somebody_there},
    connection::Connection,
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
    /// Print one JSON object: {"fleet","store","destroyed","queues","messages","failed"}; destroyed is
    /// false if another destruction was quicker
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
            somebody_there("destroy removes all data of the fleet")?;
        }
        let connection = Connection::to_fleet(settings, self.json).await?;
        if !self.yes {
            let held = connection.given(connection.admin.overview().await.map_err(AdminError::from))?;
            confirm(&question(settings, &held))?;
        }
        let was = connection.given(connection.admin.destroy().await)?;
        let (fleet, store) = (settings.fleet.value.to_string(), settings.store.value.to_string());
        let destroyed = Destroyed { fleet, store, was };
        Output::print(self.json, &destroyed, |output| {
            let baton::admin::Destroyed { removed, queues, messages, failed } = was;
            if !removed {
                let (fleet, store) = (&destroyed.fleet, &destroyed.store);
                return output.line(&format!("fleet {fleet} in {store}: another destruction was quicker"));
            }
            let s = (plural(queues), plural(messages), plural(failed));
            output.line(&format!(
                "removed fleet {} from {}: {queues} queue{}, {messages} waiting message{}, {failed} failed one{}",
                destroyed.fleet, destroyed.store, s.0, s.1, s.2
            ))
        })
    }
}

/// What is to be removed, as a question.
fn question(settings: &Settings, held: &Overview) -> String {
    let messages = held.queues.iter().map(|it| it.ready + it.delayed + it.in_flight).sum();
    let (queues, failed) = (held.queues.len() as u64, held.queues.iter().map(|it| it.failed).sum());
    let (fleet, store) = (&settings.fleet.value, &settings.store.value);
    let s = (plural(queues), plural(messages), plural(failed));
    format!(
        "Remove fleet {fleet} from {store} with {queues} queue{}, {messages} waiting message{}, {failed} failed message{}?",
        s.0, s.1, s.2
    )
}
