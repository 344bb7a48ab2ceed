//! The way to the store in force, for whoever operates the fleet in it.

use std::{sync::Arc, time::Duration};

use baton::{
    ConnectError, Fleet, FleetOptions, Name, PushError,
    admin::{Admin, AdminError},
    settings::document::meant,
    store::{Ear, SqliteStore, StoreError, StoreUrl},
};

use serde::Serialize;

use crate::{
    exit::{Exit, Failure},
    output::{Output, remark},
    settings::Settings,
};

/// The most fleets that are named in one line.
const NAMED: usize = 8;

/// How long a command that needs no store asks it for a hint.
const SOON: Duration = Duration::from_secs(3);

/// What to do about a store that is missing. A server that is down is waited for in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make the file.
    Create,
    /// A file that is not there is said so at once: nothing that was stored can be in it.
    Refuse,
}

/// A fleet's store, and who operates it.
pub(crate) struct Connection {
    pub(crate) admin: Admin,
    url: StoreUrl,
    /// Whether there was no file yet.
    is_new: bool,
}

/// What a program reads of a fleet that the store does not have.
#[derive(Serialize)]
struct NoFleet {
    exists: bool,
    fleet: String,
    store: String,
}

/// Makes the folder of the default store; any other must be there.
pub(crate) fn prepare(settings: &Settings) -> Result<(), Failure> {
    settings.prepare().map_err(|error| {
        let cause = format!("cannot make the folder of the default store, {}: {error}", settings.store.value);
        Failure::new(cause, "name a store with --store").with(Exit::Store)
    })
}

/// Passes on what happens to a store.
pub(crate) fn ear() -> Ear {
    Arc::new(|event| remark(&event.to_string()))
}

impl Connection {
    /// Opens the store in force.
    pub(crate) fn open(settings: &Settings, missing: Missing, max_queue_bytes: Option<u64>) -> Result<Self, Failure> {
        let mut options = FleetOptions::new(settings.fleet.value.clone());
        // The waiting is the admin's, who tells the person who waits.
        options.wait = Duration::ZERO;
        options.create = missing == Missing::Create;
        options.session.max_keys = settings.max_keys.value;
        options.session.key_lifetime = settings.key_lifetime.value;
        options.session.max_results = settings.max_results.value;
        if let Some(max_queue_bytes) = max_queue_bytes {
            options.session.max_queue_bytes = max_queue_bytes;
        }
        let url = settings.store.value.clone();
        if missing == Missing::Create {
            prepare(settings)?;
        }
        let fleet = Fleet::connect_with(&url, options).map_err(|error| match error {
            ConnectError::Store(error) => Failure::of_store(&error, &url),
            other => Failure::usage(other.to_string(), "see `baton --help`"),
        })?;
        let absence = match &url {
            StoreUrl::Sqlite(path) => SqliteStore::absence(path),
            _ => None,
        };
        let is_new = matches!(absence, Some(StoreError::Unreachable(_)));
        if let (Missing::Refuse, StoreUrl::Sqlite(path), Some(why)) = (missing, &url, absence) {
            let never = || format!("no store at {} yet: start a node, or name another with --store", path.display());
            return Err(match why {
                StoreError::Unreachable(_) => Failure::advised(Exit::Store, &never()),
                gone => Failure::of_store(&gone, &url),
            });
        }
        fleet.store().hear(ear());
        let admin = Admin::new(&fleet).wait(settings.wait.value);
        let admin = admin.reporting_to(Arc::new(|note| remark(&note.to_string())));
        Ok(Self { admin, url, is_new })
    }

    /// Opens the store in force for a command about a fleet that exists. A fleet of which the store has nothing is refused:
    /// its name may have a slip in it, or the store is not the one that was meant. With `json` an object says so too.
    pub(crate) async fn to_fleet(settings: &Settings, json: bool) -> Result<Self, Failure> {
        let connection = Self::open(settings, Missing::Refuse, None)?;
        if connection.given(connection.admin.exists().await)? {
            return Ok(connection);
        }
        let failure = connection.no_fleet(settings, "").await;
        if json {
            let (fleet, store) = (settings.fleet.value.to_string(), settings.store.value.to_string());
            Output::print(true, &NoFleet { exists: false, fleet, store }, |_| Ok(()))?;
        }
        Err(failure)
    }

    /// That the store has nothing of the fleet in force yet; nothing if it has, or if it does not say so soon.
    pub(crate) async fn missing_fleet(settings: &Settings) -> Option<Failure> {
        if matches!(&settings.store.value, StoreUrl::Memory) {
            return None;
        }
        let connection = match Self::open(settings, Missing::Refuse, None) {
            // A store that is away is not waited for.
            Ok(it) => Self { admin: it.admin.wait(Duration::ZERO), ..it },
            Err(failure) => {
                let is_missing = matches!(&settings.store.value, StoreUrl::Sqlite(path) if !path.exists());
                return is_missing.then_some(failure);
            }
        };
        let asked = async {
            let exists = connection.admin.exists().await.unwrap_or(true);
            let failure = if exists { None } else { Some(connection.no_fleet(settings, " yet").await) };
            connection.admin.leave().await;
            failure
        };
        tokio::time::timeout(SOON, asked).await.ok().flatten()
    }

    /// That a fleet is not in the store, with those that are and the one that was probably meant.
    pub(crate) async fn no_fleet(&self, settings: &Settings, end: &str) -> Failure {
        let (fleet, store) = (settings.fleet.value.to_string(), settings.store.value.to_string());
        // That the fleet is not there is certain; which ones are is a hint.
        let known = self.admin.fleets().await.ok().flatten().unwrap_or_default();
        let shown: Vec<&str> = known.iter().take(NAMED).map(Name::as_str).collect();
        let more = if known.len() > NAMED { format!(" and {} more", known.len() - NAMED) } else { String::new() };
        let there = if shown.is_empty() { String::new() } else { format!(" (there are: {}{more})", shown.join(", ")) };
        let next = meant(&fleet, known.iter().map(Name::as_str)).map_or_else(
            || "start a node, or name another with --fleet or --store (`baton config` shows those in use)".to_owned(),
            |near| format!("did you mean --fleet {near}?"),
        );
        Failure::new(format!("there is no fleet {fleet} in {store}{end}{there}"), next)
    }

    /// Whether there was no store yet.
    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// That the store was made by this command, once something is in it; nothing if it was there. A path with a slip in
    /// it would go unnoticed.
    pub(crate) fn novelty(&self) -> Option<String> {
        self.is_new.then(|| format!("a new store was made: {}", self.url))
    }

    /// The outcome of a single message, or why it was not stored.
    pub(crate) fn stored<T>(&self, single: Result<T, PushError>) -> Result<T, Failure> {
        single.map_err(|error| Failure::of_single(error, &self.url))
    }

    /// What an operation gave, or what is told of its failure.
    pub(crate) fn given<T>(&self, result: Result<T, impl Into<AdminError>>) -> Result<T, Failure> {
        result.map_err(|error| Failure::of_operation(&error.into(), &self.url))
    }
}
