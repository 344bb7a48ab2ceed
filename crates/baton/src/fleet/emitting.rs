//! What a message that is being run is to its call: it tells events, and hears that the call was cancelled.
//!
//! Events of a message are stored in the order in which they were emitted, each once for an attempt: those that wait while
//! others are on their way go together, under one number, and a batch that went unanswered is sent again as it was, also if
//! whoever sent it has been dropped meanwhile.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    message::{CallEvent, CallId, InvalidMessage, Key, MAX_EVENT_BYTES, Name, is_reserved},
    store::{
        Emit, Emitted, MAX_EMIT_BYTES, MAX_EVENTS, MAX_LOG, NewEvent, Refusal, StoreError, notice::Notice,
        session::Session,
    },
};

/// How long an emit waits for a follower to read before the oldest events go unread.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it pauses before it looks again whether one has: longer each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Why an event was not told.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Its name or key is not usable.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// Its name is one of those that the store writes itself.
    #[error("no event of a handler is called {0:?}")]
    Reserved(String),
    /// Its data cannot be written as JSON.
    #[error("the data of the event is not JSON: {0}")]
    Json(String),
    /// Its data is too long.
    #[error("the data of an event has at most {MAX_EVENT_BYTES} bytes, not {0}")]
    TooLong(usize),
    /// The keys of the call's events have as many bytes as they may.
    #[error("the keys of this call's events have 16 MiB: no further event with a key is taken")]
    KeysFull,
    /// Another session runs the message by now, or its call has ended: nobody wants to know.
    #[error("this message is run elsewhere by now, or its call has ended")]
    Over,
    /// The store's failure.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for EmitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(Refusal::NotHeld | Refusal::Stale) => Self::Over,
            StoreError::Refused(Refusal::EmitKeysFull) => Self::KeysFull,
            error => Self::Store(error),
        }
    }
}

/// A message of a call while it is being run.
#[derive(Debug)]
pub(super) struct CallScope {
    pub(super) call: CallId,
    /// The message.
    own: CallId,
    claim_no: u64,
    /// Nothing where there is no store: then nobody follows.
    session: Option<Session>,
    waiting: Mutex<UnsentEvents>,
    sending: tokio::sync::Mutex<Sending>,
    is_cancelled: Notice<bool>,
}

/// Events that are not on their way yet.
#[derive(Debug, Default)]
struct UnsentEvents {
    events: Vec<NewEvent>,
    /// How many there have been.
    count: u64,
}

/// What is on its way.
#[derive(Debug, Default)]
struct Sending {
    batch: Vec<NewEvent>,
    /// How many have been stored.
    stored: u64,
    /// Why there will be no more.
    failed: Option<EmitError>,
}

impl CallScope {
    pub(super) fn new(call: CallId, own: CallId, claim_no: u64, session: Option<Session>) -> Self {
        Self {
            call,
            own,
            claim_no,
            session,
            waiting: Mutex::default(),
            sending: tokio::sync::Mutex::default(),
            is_cancelled: Notice::default(),
        }
    }

    /// The call was cancelled.
    pub(super) fn cancel(&self) {
        self.is_cancelled.change(|is| !std::mem::replace(is, true));
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.get()
    }

    /// Returns once the call was cancelled.
    pub(super) async fn cancelled(&self) {
        self.is_cancelled.until(|is| *is).await;
    }

    /// Tells an event; returns once it is stored.
    pub(super) async fn emit(&self, key: Option<Key>, event: &str, data: &[u8]) -> Result<(), EmitError> {
        Name::new(event)?;
        if is_reserved(event) {
            return Err(EmitError::Reserved(event.to_owned()));
        }
        if data.len() > MAX_EVENT_BYTES {
            return Err(EmitError::TooLong(data.len()));
        }
        let Some(session) = &self.session else { return Ok(()) };
        let message = Some(&self.own).filter(|own| **own != self.call);
        let bytes = CallEvent::bytes(event, message, key.as_ref(), data);
        let place = self.put(NewEvent { key, bytes });
        loop {
            let mut sending = self.sending.lock().await;
            if sending.stored >= place {
                return Ok(());
            }
            if let Some(failed) = &sending.failed {
                return Err(failed.clone());
            }
            if sending.batch.is_empty() {
                sending.batch = self.take();
            }
            match self.send(session, &sending).await {
                Ok(()) => {
                    sending.stored += sending.batch.len() as u64;
                    sending.batch.clear();
                }
                Err(error) => sending.failed = Some(error),
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, UnsentEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event behind those that wait; its place among all.
    fn put(&self, event: NewEvent) -> u64 {
        let mut waiting = self.waiting();
        waiting.events.push(event);
        waiting.count += 1;
        waiting.count
    }

    /// As many of those that wait as go together.
    fn take(&self) -> Vec<NewEvent> {
        let mut waiting = self.waiting();
        let mut bytes = 0;
        let fits = |event: &&NewEvent| {
            bytes += event.bytes.len();
            bytes <= MAX_EMIT_BYTES
        };
        let count = waiting.events.iter().take(MAX_EVENTS).take_while(fits).count().max(1);
        let count = count.min(waiting.events.len());
        let rest = waiting.events.split_off(count);
        std::mem::replace(&mut waiting.events, rest)
    }

    /// Sends a batch until it is stored, waiting for followers as long as one may.
    async fn send(&self, session: &Session, sending: &Sending) -> Result<(), EmitError> {
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let emit = Emit {
                session: session.id(),
                claim_no: self.claim_no,
                queue: self.own.queue.clone(),
                id: self.own.id,
                number: sending.stored + 1,
                events: sending.batch.clone(),
                max_log: MAX_LOG,
                force: begun.elapsed() >= PATIENCE,
            };
            match session.ask_apart(emit).await? {
                Emitted::Kept => return Ok(()),
                Emitted::Full => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
