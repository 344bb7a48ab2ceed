//! Whether the store answers, and the line of requests that wait while it does not. A task of its own looks, so that no
//! request waits to find out.
//!
//! A store is there when it answers and the session that messages are handed in by is one that it knows: so whatever
//! waited is handed in by one session, in its order. It is away from the first call on that found it so, be that a
//! beat, a request or a look.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use baton::{
    Fleet, MessageId, Name, StoreError,
    deferred::{Bounds, Deferred, Seat, Starter},
    store::{ReadResult, session::Session},
};
use tokio::{sync::Notify, time::timeout};

use crate::pace::Lasting;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked while it answers, and while it does not.
const EVERY: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(100);
/// A queue that is asked about because one must be named.
const ANY_QUEUE: &str = "baton-gateway";

/// A request's right to wait for the store.
pub(crate) type StoreSeat = Seat<Fleet, StoreError>;

/// The state of the store.
pub(crate) struct Readiness {
    pub(crate) store: Deferred<Fleet, StoreError>,
    starter: Starter<Fleet, StoreError>,
    doubted: Notify,
    /// Whether the task that looks has ended.
    is_closed: AtomicBool,
}

impl Readiness {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let (store, starter) = Deferred::new(bounds);
        Self { store, starter, doubted: Notify::new(), is_closed: AtomicBool::new(false) }
    }

    /// A request has found the store to be away: others wait until it was looked at.
    pub(crate) fn doubt(&self) {
        self.starter.gone();
        if self.is_closed.load(Ordering::Acquire) {
            self.give_up();
        } else {
            self.doubted.notify_one();
        }
    }

    /// The task that looks has ended: requests that wait for the store, or find it away from now on, are refused. A
    /// store that answers is used to the end.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if !self.store.is_started() {
            self.give_up();
        }
    }

    fn give_up(&self) {
        self.starter.failed(StoreError::Unreachable("the gateway stops".to_owned()));
    }

    /// Looks again and again, for ever; ends the trouble when it answers again.
    pub(crate) async fn watch(&self, fleet: &Fleet, trouble: &Lasting) {
        loop {
            let away = StoreError::Unreachable("the store did not answer in time".to_owned());
            match timeout(PATIENCE, look(fleet)).await.unwrap_or(Err(away)) {
                Ok(session) => {
                    if !self.store.is_started() {
                        trouble.over();
                    }
                    self.starter.started(fleet.clone());
                    self.until_doubted(&session).await;
                }
                Err(error) => {
                    let may_pass = error.is_retryable() || error == StoreError::Refused(baton::store::Refusal::Stale);
                    if may_pass {
                        self.starter.gone()
                    } else {
                        self.starter.failed(error)
                    }
                    tokio::time::sleep(SOON).await;
                }
            }
        }
    }

    /// Returns when it is time to look again.
    async fn until_doubted(&self, session: &Session) {
        let mut troubles = session.troubles();
        let away = async {
            // The end of a session shows in `over`.
            if troubles.wait_for(is_away).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.doubted.notified() => {}
            () = away => self.starter.gone(),
            () = session.over() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

const fn is_away(trouble: &Option<StoreError>) -> bool {
    matches!(trouble, Some(StoreError::Unreachable(_)))
}

/// Joins, so that the first request need not, and asks something small. A session that was cut off is one of the
/// store's only once a beat was answered; one that the store has forgotten is over then, and the next look joins again.
async fn look(fleet: &Fleet) -> Result<Session, StoreError> {
    let session = fleet.session().await?;
    let queue = Name::new(ANY_QUEUE)?;
    fleet.ask(ReadResult { queue, id: MessageId(1) }).await?;
    let trouble = session.troubles().borrow().clone();
    match trouble.filter(|trouble| matches!(trouble, StoreError::Unreachable(_))) {
        Some(trouble) => Err(trouble),
        None => Ok(session),
    }
}
