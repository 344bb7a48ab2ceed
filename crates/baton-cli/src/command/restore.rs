//! `baton restore`: puts a backup in the place of the store.

use std::{path::PathBuf, sync::Arc};

use baton::store::{RestoreError, SqliteStore};
use serde::Serialize;

use super::backup::file_of;
use crate::{
    exit::{Exit, Failure},
    output::{Output, remark},
    settings::Settings,
};

/// Put a backup in the place of the store; refused while anybody has it open
///
/// The store that was there is kept beside it under another name, which is told. Messages that were in flight when the
/// backup was made go back to their queues when their leases are over.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton kill && baton restore /backups/monday.db
  baton --store sqlite:/tmp/look.db restore /backups/monday.db --json")]
pub(crate) struct Restore {
    /// The backup
    path: PathBuf,
    /// Print one JSON object: {"store","backup","bytes","fleets","kept"}; kept is null if there was no store
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Restored {
    store: String,
    backup: PathBuf,
    bytes: u64,
    fleets: u64,
    kept: Option<PathBuf>,
}

impl Restore {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let url = &settings.store.value;
        let store = file_of(url)?;
        let from = self.path.clone();
        let restored = tokio::task::spawn_blocking(move || SqliteStore::restore(&store, &from, Arc::new(remark))).await;
        let restored =
            restored.map_err(|error| Failure::new(format!("the copy broke off: {error}"), "run this again"))?;
        let restored = restored.map_err(|error| match error {
            RestoreError::Store(error) => Failure::of_copy(&error, url),
            in_use => Failure::new(in_use.to_string(), "stop them first, with `baton kill`; nothing was changed"),
        })?;
        let restored = Restored {
            store: url.to_string(),
            backup: self.path,
            bytes: restored.backup.bytes,
            fleets: restored.backup.fleets,
            kept: restored.kept,
        };
        let mut output = Output::new();
        if self.json {
            output.json(&restored)?;
        } else {
            let kept = restored.kept.as_ref().map(|kept| format!("; the former store is kept as {}", kept.display()));
            output.line(&format!(
                "{} is restored from {}{}",
                restored.store,
                restored.backup.display(),
                kept.unwrap_or_default()
            ))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}
