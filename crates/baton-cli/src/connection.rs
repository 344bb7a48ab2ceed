//! The way to the store: waits for one that is not up yet, says so once, and gives up in time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use baton::{
    Fleet, FleetOptions,
    message::SessionId,
    store::{Operation, SqliteStore, StoreError, StoreUrl, TakeSurvey, session::Session},
};
use tokio::time::Instant;

use crate::{
    exit::{Exit, Failure},
    output::{remark, span, tame},
    settings::Settings,
};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked what a call runs into.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// An answer is waited for at least this long, however impatient the caller is.
const SHORTEST_ANSWER: Duration = Duration::from_secs(2);
/// Leaving is a courtesy; the lease does the rest.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// What to do about a store that is missing. A server that is down is waited for in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make the file.
    Create,
    /// A file that is not there is said so at once: nothing that was stored can be in it.
    Refuse,
}

/// A fleet's store, and the patience to wait for it.
pub(crate) struct Connection {
    fleet: Fleet,
    url: StoreUrl,
    wait: Duration,
    /// Whether there was no file yet.
    is_new: bool,
    waiting_was_said: AtomicBool,
    silence_was_said: AtomicBool,
}

impl Connection {
    /// Opens the store in force.
    pub(crate) fn open(settings: &Settings, missing: Missing, max_backlog: Option<u64>) -> Result<Self, Failure> {
        let mut options = FleetOptions::new(settings.fleet.value.clone());
        // The waiting is done here, where it can be told to the person who waits.
        options.wait = Duration::ZERO;
        options.create = missing == Missing::Create;
        if let Some(max_backlog) = max_backlog {
            options.session.max_backlog = max_backlog;
        }
        let url = settings.store.value.clone();
        let fleet = Fleet::connect_with(&url, options).map_err(|error| match error {
            baton::ConnectError::Store(error) => Failure::of_store(&error, &url),
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
        fleet.store().hear(Arc::new(remark));
        let wait = settings.wait.value;
        let (waiting_was_said, silence_was_said) = (AtomicBool::default(), AtomicBool::default());
        Ok(Self { fleet, url, wait, is_new, waiting_was_said, silence_was_said })
    }

    /// The fleet itself, for whoever does its own waiting.
    pub(crate) const fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// That the store was made by this command, once something is in it; nothing if it was there. A path with a slip in
    /// it would go unnoticed.
    pub(crate) fn novelty(&self) -> Option<String> {
        self.is_new.then(|| format!("a new store was made: {}", self.url))
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// A failure of this store.
    pub(crate) fn failure(&self, error: &StoreError) -> Failure {
        Failure::of_store(error, &self.url)
    }

    /// A quick question that needs no session.
    pub(crate) async fn ask<O: Operation + Clone>(&self, operation: O) -> Result<O::Answer, Failure> {
        let asked = self.when_up(Some(self.answer_limit()), || self.fleet.ask(operation.clone())).await;
        asked.map_err(|error| self.failure(&error))
    }

    /// A question whose answer may take as long as there is data; the store's own words if it refuses.
    pub(crate) async fn ask_at_length<O: Operation + Clone>(&self, operation: O) -> Result<O::Answer, StoreError> {
        let asked = self.when_up(None, || self.fleet.ask(operation.clone()));
        tokio::pin!(asked);
        tokio::select! {
            answer = &mut asked => return answer,
            () = tokio::time::sleep(self.answer_limit()) => self.say_silent(),
        }
        asked.await
    }

    /// The visitor's session, joined now if there is none or the last one is over.
    pub(crate) async fn session(&self) -> Result<Session, Failure> {
        let joined = self.when_up(Some(self.answer_limit()), || self.fleet.session()).await;
        joined.map_err(|error| self.failure(&error))
    }

    /// Waits for a call of the session, which repeats it, until whatever is in its way has been there for too long.
    pub(crate) async fn attend<T>(
        &self, session: &Session, call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::pin!(call);
        let mut since: Option<Instant> = None;
        let began = Instant::now();
        loop {
            tokio::select! {
                answer = &mut call => return answer,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let Some(error) = session.trouble() else {
                since = None;
                if began.elapsed() >= self.answer_limit() {
                    self.say_silent();
                }
                continue;
            };
            self.say_waiting(&error);
            if since.get_or_insert_with(Instant::now).elapsed() >= self.wait {
                return Err(error);
            }
        }
    }

    /// A session as a person can find it: `host/pid`.
    pub(crate) async fn name_of(&self, session: SessionId) -> Result<String, Failure> {
        let survey = self.ask(TakeSurvey).await?;
        let found = survey.sessions.iter().find(|it| it.session == session);
        Ok(found.map_or_else(|| format!("session {session}"), |it| format!("{}/{}", tame(&it.host), it.pid)))
    }

    /// Leaves if it had joined, and closes the store in order.
    pub(crate) async fn leave(&self) {
        tokio::time::timeout(LEAVE_LIMIT, self.fleet.leave()).await.ok();
    }

    /// Tells, once in a run, that and why there is a wait.
    pub(crate) fn say_waiting(&self, why: &dyn std::fmt::Display) {
        if !self.wait.is_zero() && !self.waiting_was_said.swap(true, Ordering::Relaxed) {
            remark(&format!("waiting up to {}: {why}", span(self.wait)));
        }
    }

    /// Tells, once in a run, that the store neither answers nor fails: it may be busy, or held by a process that stands
    /// still.
    pub(crate) fn say_silent(&self) {
        if !self.silence_was_said.swap(true, Ordering::Relaxed) {
            remark("the store has not answered yet; still waiting");
        }
    }

    pub(crate) fn answer_limit(&self) -> Duration {
        self.wait.max(SHORTEST_ANSWER)
    }

    /// Repeats `attempt` while the store is not up and time is left.
    async fn when_up<T, F: Future<Output = Result<T, StoreError>>>(
        &self, answer_limit: Option<Duration>, attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + self.wait;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = match answer_limit {
                Some(limit) => tokio::time::timeout(limit, attempt())
                    .await
                    .unwrap_or_else(|_| Err(StoreError::Unreachable(format!("no answer within {}", span(limit))))),
                None => attempt().await,
            };
            match result {
                Err(error) if error.is_retryable() && Instant::now() < deadline => {
                    self.say_waiting(&error);
                    tokio::time::sleep(pause.min(deadline - Instant::now())).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                result => return result,
            }
        }
    }
}
