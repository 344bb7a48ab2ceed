//! `baton restore`: puts a backup in the place of the store.

use std::path::PathBuf;

use baton::admin::restore;

use super::backup::failure;
use crate::{
    connection::{ear, prepare},
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// Replace the store by a backup; refused while a process has the store open
///
/// The former store is kept in the same folder under another name, which is printed. Messages that were in flight when
/// the backup was made go back to their queues when their leases expire.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton stop && baton restore /backups/monday.db
  baton --store sqlite:/tmp/look.db restore /backups/monday.db --json")]
pub(crate) struct Restore {
    /// The backup file
    path: PathBuf,
    /// Print one JSON object: {"store","backup","bytes","fleets","kept"}; kept is null if no store was there
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        prepare(settings)?;
        let url = &settings.store.value;
        let restored = restore(url, &self.path, ear()).await.map_err(|error| failure(&error, url))?;
        Output::print(self.json, &restored, |output| {
            let kept = restored.kept.as_ref().map(|kept| format!("; the former store is kept as {}", kept.display()));
            let (store, backup) = (&restored.copy.store, restored.copy.backup.display());
            output.line(&format!("{store} is restored from {backup}{}", kept.unwrap_or_default()))
        })
    }
}
