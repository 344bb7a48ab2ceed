//! `baton backup`: copies the store to a file.

use std::path::PathBuf;

use baton::{
    admin::{BackedUp, CopyError, back_up},
    store::StoreUrl,
};

use crate::{
    connection::ear,
    exit::{Exit, Failure},
    output::Output,
    settings::Settings,
};

/// Copy the store to a file while the nodes go on working
///
/// The copy is consistent: it holds the store as it was at one instant, with all its fleets. It needs no other file.
/// `baton restore` brings it back. Back up a store in Redis with Redis's own tools.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton backup /backups/monday.db
  baton backup latest.db --force --json")]
pub(crate) struct Backup {
    /// The file to write
    path: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object: {"store","backup","bytes","fleets"}
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let url = &settings.store.value;
        let copied = back_up(url, &self.path, self.force, ear()).await;
        let copied = copied.map_err(|error| failure(&error, url))?;
        Output::print(self.json, &copied, |output| {
            let BackedUp { store, backup, bytes, .. } = &copied;
            output.line(&format!("{store} is backed up in {} ({bytes} bytes)", backup.display()))
        })
    }
}

/// Why a store was not copied, and what to do about it.
pub(super) fn failure(error: &CopyError, url: &StoreUrl) -> Failure {
    const REDIS: &str = "run BGSAVE and copy the dump file; to restore, stop Redis, put it back and start Redis with \
                         `appendonly no`, since it reads no dump where it keeps an append-only file; then `CONFIG SET \
                         appendonly yes`";
    match error {
        CopyError::Store(error) => Failure::of_copy(error, url),
        CopyError::InMemory => Failure::usage(error.to_string(), "use sqlite:PATH or Redis"),
        CopyError::OnServer(_) => Failure::usage(error.to_string(), REDIS),
        CopyError::Exists(_) => Failure::new(error.to_string(), "name another, or add --force"),
        CopyError::InUse { .. } => {
            Failure::new(error.to_string(), "stop them first, with `baton stop`; nothing was changed")
        }
        _ => Failure::new(error.to_string(), "run this again"),
    }
}
