//! `baton migrate`: brings a store of an older release up to this one's format.

use baton::admin::{MigrationProgress, wording::span};
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, remark},
    settings::Settings,
};

/// Convert the store of an older release to this release's format; the fleet must be stopped
///
/// There is no way back: make a backup first, with `baton backup` or with Redis's own tools. Killed nodes are watched for
/// two lease times and then removed; their messages go back to the queues. Live nodes and clients prevent the migration.
/// If a run is interrupted, run it again. In an SQLite store all fleets are migrated, in Redis the one that --fleet names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton backup before.db && baton migrate
  baton --rhost 10.0.0.5 --fleet billing migrate --json")]
pub(crate) struct Migrate {
    /// Print one JSON object: {"migrated","from","to","sessions","back","failed","fleet","store"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Migrated {
    #[serde(flatten)]
    did: baton::admin::Migrated,
    fleet: String,
    store: String,
}

impl Migrate {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let connection = Connection::open(settings, Missing::Refuse, None)?;
        let mut looks = false;
        let did = connection.given(connection.admin.migrate(|progress| tell(progress, &mut looks)).await)?;
        let (fleet, store) = (settings.fleet.value.to_string(), settings.store.value.to_string());
        let migrated = Migrated { did, fleet, store };
        Output::print(self.json, &migrated, |output| output.line(&line(&migrated)))
    }
}

/// Tells the person who waits; steps that end at once are not worth a line. `looks` once it is told that what is stored is
/// looked through, which may take many.
fn tell(progress: MigrationProgress, looks: &mut bool) {
    match progress {
        MigrationProgress::Watching { sessions, time } => {
            let s = plural(sessions);
            remark(&format!("watching for {} whether any of {sessions} session{s} lives", span(time)));
        }
        MigrationProgress::Converting { done: 0, left } if left > 0 && !*looks => {
            *looks = true;
            remark("looking through what is stored");
        }
        MigrationProgress::Converting { done, left } if left > 0 && done > 0 && done.is_multiple_of(100) => {
            remark(&format!("{done} of {} sessions are taken out", done + left));
        }
        _ => {}
    }
}

fn line(it: &Migrated) -> String {
    let Migrated { did: baton::admin::Migrated { migrated, from, to, sessions, back, failed }, store, .. } = it;
    match from {
        Some(from) if *migrated => {
            let s = (plural(*sessions), plural(*back));
            format!(
                "{store} is migrated from format {from} to {to}: {sessions} silent session{} taken out, {back} message{} \
                 back in their queues, {failed} gone to the errors",
                s.0, s.1
            )
        }
        Some(from) if from < to => format!("{store} is of format {to} now: another run has migrated it meanwhile"),
        Some(_) => format!("{store} is of format {to} already"),
        None => format!("{store} holds nothing of fleet {}: nothing to migrate", it.fleet),
    }
}
