//! The way to the store: waits for one that is not up yet, says so once, and gives up in time.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{Admin, Note, NoteEar, Whereabouts, wording::span};
use crate::{
    backoff::Backoff,
    drivers,
    message::SessionId,
    store::{Operation, StoreError, session::Session},
};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked what a call runs into.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The shortest time that an answer is waited for.
pub(super) const SHORTEST_ANSWER: Duration = Duration::from_secs(2);
/// The same where a person has bounded the whole operation.
pub(super) const PROMPT: Duration = Duration::from_millis(500);
/// Leaving is a courtesy; the lease does the rest.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// Who hears why there is a wait, and what was said.
#[derive(Default)]
pub(super) struct Voice {
    ear: Option<NoteEar>,
    waiting_was_said: AtomicBool,
    silence_was_said: AtomicBool,
}

impl Voice {
    pub(super) fn new(ear: NoteEar) -> Self {
        Self { ear: Some(ear), ..Self::default() }
    }

    pub(super) fn tell(&self, note: &Note) {
        if let Some(ear) = &self.ear {
            ear(note);
        }
    }
}

impl Admin {
    /// A quick question that needs no session.
    pub(super) async fn ask<O: Operation + Clone>(&self, operation: O) -> Result<O::Answer, StoreError> {
        self.when_up(Some(self.answer_limit()), || self.fleet.ask(operation.clone())).await
    }

    /// A question whose answer may take as long as there is data.
    pub(super) async fn ask_at_length<O: Operation + Clone>(&self, operation: O) -> Result<O::Answer, StoreError> {
        let asked = self.when_up(None, || self.fleet.ask(operation.clone()));
        tokio::pin!(asked);
        tokio::select! {
            answer = &mut asked => return answer,
            () = tokio::time::sleep(self.answer_limit()) => self.say_silent(),
        }
        asked.await
    }

    /// Waits for a call of the session, which repeats it, until whatever is in its way has been there for too long.
    pub(super) async fn attend<T>(
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

    /// Where a session runs, as a person can find it.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn whereabouts(&self, session: SessionId) -> Result<Whereabouts, StoreError> {
        let survey = self.survey().await?;
        let found = survey.sessions.iter().find(|it| it.session == session);
        Ok(found.map_or(Whereabouts { session, process: None }, Whereabouts::of))
    }

    /// Leaves if it had joined, and closes the store in order; later calls open it anew. What does not succeed in time is
    /// left to the lease.
    pub async fn leave(&self) {
        self.leave_within(LEAVE_LIMIT).await;
    }

    /// As [`Admin::leave`], for so long at most.
    pub(super) async fn leave_within(&self, limit: Duration) {
        tokio::time::timeout(limit, self.fleet.leave()).await.ok();
    }

    /// Tells, once, that and why there is a wait.
    pub(super) fn say_waiting(&self, why: &dyn fmt::Display) {
        if !self.wait.is_zero() && !self.voice.waiting_was_said.swap(true, Ordering::Relaxed) {
            self.voice.tell(&Note::Waiting { limit: self.wait, why: why.to_string() });
        }
    }

    /// Tells, once, that the store neither answers nor fails: it may be busy, or held by a process that stands still.
    pub(super) fn say_silent(&self) {
        if !self.voice.silence_was_said.swap(true, Ordering::Relaxed) {
            self.voice.tell(&Note::Silent { why: self.fleet.store().in_the_way() });
        }
    }

    pub(super) fn answer_limit(&self) -> Duration {
        self.wait.max(self.shortest_answer)
    }

    fn no_answer(&self, limit: Duration) -> StoreError {
        let why = self.fleet.store().in_the_way().map(|why| format!(": {why}")).unwrap_or_default();
        StoreError::Unreachable(format!("no answer within {}{why}", span(limit)))
    }

    /// Repeats `attempt` while the store is not up and time is left.
    pub(super) async fn when_up<T, F: Future<Output = Result<T, StoreError>>>(
        &self, answer_limit: Option<Duration>, attempt: impl Fn() -> F,
    ) -> Result<T, StoreError> {
        drivers::timers_here()?;
        let deadline = Instant::now() + self.wait;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let result = match answer_limit {
                Some(limit) => {
                    tokio::time::timeout(limit, attempt()).await.unwrap_or_else(|_| Err(self.no_answer(limit)))
                }
                None => attempt().await,
            };
            match result {
                Err(error) if error.is_retryable() && Instant::now() < deadline => {
                    self.say_waiting(&error);
                    tokio::time::sleep(backoff.pause().min(deadline - Instant::now())).await;
                }
                result => return result,
            }
        }
    }
}

/// Measures how long nothing could be stored.
pub(super) struct Patience {
    wait: Duration,
    stuck: Option<Instant>,
}

impl Patience {
    pub(super) const fn new(wait: Duration) -> Self {
        Self { wait, stuck: None }
    }

    /// Something was stored, or nothing stands in the way.
    pub(super) const fn calm(&mut self) {
        self.stuck = None;
    }

    /// The store is away, and was last heard of then; says so once, and whether that is too long ago.
    pub(super) fn outlasted(&mut self, admin: &Admin, cause: &dyn fmt::Display, heard: Instant) -> bool {
        let since = self.stuck.map_or(heard, |stuck| stuck.min(heard));
        self.stuck = Some(since);
        self.worn_out(admin, cause)
    }

    /// Something stands in the way; says so once, and whether it has been there for too long.
    pub(super) fn worn_out(&mut self, admin: &Admin, cause: &dyn fmt::Display) -> bool {
        admin.say_waiting(cause);
        self.stuck.get_or_insert_with(Instant::now).elapsed() >= self.wait
    }
}
