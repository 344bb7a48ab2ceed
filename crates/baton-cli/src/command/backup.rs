//! `baton backup`: copies the store to a file.

use std::{path::PathBuf, sync::Arc};

use baton::store::{SqliteStore, StoreUrl};
use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    output::{Output, remark},
    settings::Settings,
};

/// Copy the store, as it is at one instant, to a file; nodes may go on working
///
/// All fleets of an SQLite store are in the copy, which needs no other file. `baton restore` brings it back. A store in
/// Redis is backed up with Redis's own means.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton backup /backups/monday.db
  baton backup latest.db --force --json")]
pub(crate) struct Backup {
    /// The file to write
    path: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// Print one JSON object: {"store","backup","bytes","fleets"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct BackedUp {
    store: String,
    backup: PathBuf,
    bytes: u64,
    fleets: u64,
}

impl Backup {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let url = &settings.store.value;
        let store = file_of(url)?;
        if self.path.symlink_metadata().is_ok() && !self.force {
            return Err(Failure::new(
                format!("{} exists already", self.path.display()),
                "name another, or add --force",
            ));
        }
        let to = self.path.clone();
        let copied = tokio::task::spawn_blocking(move || SqliteStore::back_up(&store, &to, Arc::new(remark))).await;
        let copied = copied.map_err(|error| Failure::new(format!("the copy broke off: {error}"), "run this again"))?;
        let copied = copied.map_err(|error| Failure::of_copy(&error, url))?;
        let backed_up =
            BackedUp { store: url.to_string(), backup: self.path, bytes: copied.bytes, fleets: copied.fleets };
        let mut output = Output::new();
        if self.json {
            output.json(&backed_up)?;
        } else {
            let BackedUp { store, backup, bytes, .. } = &backed_up;
            output.line(&format!("{store} is backed up in {} ({bytes} bytes)", backup.display()))?;
        }
        output.flush()?;
        Ok(Exit::Ok)
    }
}

/// The file of the store, if it is in one.
pub(super) fn file_of(url: &StoreUrl) -> Result<PathBuf, Failure> {
    match url {
        StoreUrl::Sqlite(path) => Ok(path.clone()),
        StoreUrl::Memory => Err(Failure::usage("a store in memory cannot be backed up", "use sqlite:PATH or Redis")),
        _ => Err(Failure::usage(
            format!("{url} is backed up by Redis itself, not by baton"),
            "run BGSAVE and copy the dump file, or copy the append-only folder; to restore, stop Redis and put it back",
        )),
    }
}
