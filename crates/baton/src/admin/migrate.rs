//! A store of an older format is brought up to this release's, while its fleet stands still.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::{Admin, AdminError, Whereabouts};
use crate::store::{Conversion, Converted, FORMAT, SeenSession, Standing, StoreError};

/// How often it is looked whether anybody calls.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many of the longest leases are watched for: who beats is seen within one.
const LEASES_WATCHED: u32 = 2;

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// Whether this run did something: of several at once each tells of its own part.
    pub migrated: bool,
    /// The format found at first; nothing if nothing is stored.
    pub from: Option<u32>,
    /// The format it is in now.
    pub to: u32,
    /// Sessions of before that were taken out, as if their leases had ended.
    pub sessions: u64,
    /// Messages they held that are back in their queues.
    pub back: u64,
    /// Messages they held that failed after one crash too many.
    pub failed: u64,
}

/// How far a migration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrationProgress {
    /// It is watched whether any of the sessions that are still there lives.
    Watching {
        /// How many there are.
        sessions: u64,
        /// For how long.
        time: Duration,
    },
    /// It is being converted.
    Converting {
        /// Sessions taken out.
        done: u64,
        /// Sessions still to be taken out.
        left: u64,
    },
}

impl Admin {
    /// Brings the store from an older format to this release's. One way; of an SQLite file all fleets at once. Sessions
    /// that are still there are watched for two of their longest leases: the silent ones are taken out, and what they
    /// held goes back with a crash.
    ///
    /// A migration that was cut off goes on when it is run again, and until then nobody can join. A store that is of this
    /// format is left as it is.
    ///
    /// # Errors
    /// [`AdminError::InUse`] if anybody has called meanwhile; the store's failure or refusal.
    pub async fn migrate(&self, mut progress: impl FnMut(MigrationProgress)) -> Result<Migrated, AdminError> {
        let since = self.standing().await?;
        let mut migrated =
            Migrated { migrated: false, from: since.format, to: FORMAT, sessions: 0, back: 0, failed: 0 };
        if !since.is_older() {
            return Ok(migrated);
        }
        self.watch_silence(&since, &mut progress).await?;
        loop {
            let step = self.when_up(None, || self.fleet.store().convert(since.clone())).await?;
            let (Converted { sessions, back, failed }, left) = match step {
                Conversion::Disturbed => return Err(in_use(&since, &self.standing().await?)),
                Conversion::Nothing => return Ok(migrated),
                Conversion::Step { done, left } => (done, left),
            };
            migrated.migrated = true;
            migrated.sessions += sessions;
            migrated.back += back;
            migrated.failed += failed;
            progress(MigrationProgress::Converting { done: migrated.sessions, left });
            if left == 0 {
                return Ok(migrated);
            }
        }
    }

    /// Looks until the sessions that were silent so far must have died.
    async fn watch_silence(
        &self, since: &Standing, progress: &mut impl FnMut(MigrationProgress),
    ) -> Result<(), AdminError> {
        let Some(longest) = since.seen.iter().map(|session| session.lease_ms).max() else { return Ok(()) };
        let time = Duration::from_millis(longest) * LEASES_WATCHED;
        progress(MigrationProgress::Watching { sessions: since.seen.len() as u64, time });
        let until = Instant::now() + time;
        while Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY.min(until - Instant::now())).await;
            let now = self.standing().await?;
            if now.stamp != since.stamp {
                return Err(in_use(since, &now));
            }
        }
        Ok(())
    }

    async fn standing(&self) -> Result<Standing, StoreError> {
        self.when_up(Some(self.answer_limit()), || self.fleet.store().standing()).await
    }
}

fn in_use(since: &Standing, now: &Standing) -> AdminError {
    let whereabouts = |it: &SeenSession| Whereabouts { session: it.session, process: Some((it.host.clone(), it.pid)) };
    AdminError::InUse { by: now.alive_since(since).map(whereabouts).collect() }
}
