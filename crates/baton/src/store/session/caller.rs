//! Repeating a call until it is answered, or until the session is over.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    backoff::Backoff,
    message::SessionId,
    store::{Operation, Refusal, Request, Store, StoreError, notice::Notice},
};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The same while a recount holds the store: shorter than the time between two of them.
const HELD_PAUSE: Duration = Duration::from_millis(100);

/// The store as one session calls it.
#[derive(Clone)]
pub(super) struct Caller {
    store: Arc<dyn Store>,
    id: SessionId,
    /// Why the session is over, once it is.
    over: Arc<Notice<Option<StoreError>>>,
    /// What the last call being repeated ran into.
    trouble: Arc<watch::Sender<Option<StoreError>>>,
    /// Why the last call that brings something new found no room, until one has.
    shortage: Arc<watch::Sender<Option<StoreError>>>,
}

/// An answer, and whether an earlier attempt may have reached the store without one.
pub(super) struct Answered<T> {
    pub(super) result: Result<T, StoreError>,
    pub(super) ambiguous: bool,
    /// Whether the store itself has given the answer; otherwise the session was over before it did.
    pub(super) from_store: bool,
}

impl Caller {
    pub(super) fn new(store: Arc<dyn Store>, id: SessionId) -> Self {
        let [trouble, shortage] = [(); 2].map(|()| Arc::new(watch::Sender::new(None)));
        Self { store, id, over: Arc::default(), trouble, shortage }
    }

    pub(super) const fn id(&self) -> SessionId {
        self.id
    }

    /// The same session over calls that do not queue behind others.
    pub(super) fn apart(&self) -> Self {
        Self { store: self.store.apart(), ..self.clone() }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// Whether it is over for another reason than that the store knows it no longer.
    pub(super) fn has_broken_off(&self) -> bool {
        self.over.get().is_some_and(|reason| reason != StoreError::Refused(Refusal::Stale))
    }

    pub(super) fn trouble(&self) -> Option<StoreError> {
        self.trouble.borrow().clone()
    }

    pub(super) fn troubles(&self) -> watch::Receiver<Option<StoreError>> {
        self.trouble.subscribe()
    }

    pub(super) fn shortages(&self) -> watch::Receiver<Option<StoreError>> {
        self.shortage.subscribe()
    }

    /// Notes that the store cannot be reached, or that it has answered a call outside of [`Caller::repeat`]. What else
    /// keeps other calls from being answered stays noted.
    pub(super) fn reached(&self, away: Option<StoreError>) {
        self.trouble.send_if_modified(|trouble| match (away, &trouble) {
            (Some(away), _) => {
                *trouble = Some(away);
                true
            }
            (None, Some(StoreError::Unreachable(_))) => trouble.take().is_some(),
            (None, _) => false,
        });
    }

    /// Marks the session as over; the first reason stays.
    pub(super) fn end(&self, reason: StoreError) {
        self.over.change(|over| {
            let first = over.is_none();
            if first {
                *over = Some(reason);
            }
            first
        });
    }

    /// Returns, with the reason, once the session is over.
    pub(super) async fn ended(&self) -> StoreError {
        self.over.until(Option::is_some).await.unwrap_or(StoreError::Refused(Refusal::Stale))
    }

    /// The answer to an operation, however often it takes.
    pub(super) async fn repeat<O: Operation>(&self, operation: O) -> Result<O::Answer, StoreError> {
        self.repeat_from::<O>(&operation.request(), false).await.result
    }

    /// As [`Caller::repeat`], telling also whether an unanswered attempt may have taken effect; with `if_room` only until
    /// the store says that it has no room.
    pub(super) async fn repeat_from<O: Operation>(&self, request: &Request, if_room: bool) -> Answered<O::Answer> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut ambiguous = false;
        loop {
            if let Some(reason) = self.over.get() {
                return Answered { result: Err(reason), ambiguous, from_store: false };
            }
            let error = match self.store.call(request.clone()).await {
                Ok(answer) => {
                    self.trouble.send_if_modified(|trouble| trouble.take().is_some());
                    if request.new_bodies().is_some() {
                        self.shortage.send_if_modified(|shortage| shortage.take().is_some());
                    }
                    let result = O::answer(answer);
                    // One that cannot be read says nothing of what was done.
                    ambiguous |= result.is_none();
                    let result =
                        result.ok_or_else(|| StoreError::Damaged("the store answered another question".into()));
                    return Answered { result, ambiguous, from_store: true };
                }
                Err(error) => error,
            };
            if error == StoreError::Refused(Refusal::Stale) {
                self.end(error.clone());
            }
            ambiguous |= matches!(error, StoreError::Unreachable(_) | StoreError::Damaged(_));
            if matches!(error, StoreError::NoRoom(_)) {
                self.shortage.send_replace(Some(error.clone()));
            }
            let gives_up = if_room && matches!(error, StoreError::NoRoom(_));
            if gives_up || !error.is_retryable() {
                // A refusal is an answer.
                self.reached(None);
                return Answered { result: Err(error), ambiguous, from_store: true };
            }
            let is_held = matches!(error, StoreError::Refused(Refusal::Held { .. }));
            let pause = backoff.pause().min(if is_held { HELD_PAUSE } else { LONGEST_PAUSE });
            self.trouble.send_replace(Some(error));
            // Seldom, and of more room than all the rest, which every call has to be given.
            Box::pin(self.rest(pause)).await;
        }
    }

    /// Lets some time pass, unless the session is over.
    async fn rest(&self, pause: Duration) {
        tokio::select! {
            biased;
            _ = self.ended() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
