//! Pushing bodies of one type to one queue.

use std::{marker::PhantomData, time::Duration};

use super::Fleet;
use crate::{
    message::{Digest, InvalidMessage, Key, Lot, LotKey, MAX_BODY_BYTES, MessageId, Name, Parcel},
    store::{LotVerdict, Refusal, StoreError, session::SubmitError},
};

/// Why a body was not pushed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The queue's name or the body is not usable.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// The body cannot be written as JSON.
    #[error("the body is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The key was used with another body within the last 24 hours.
    #[error("the key {0:?} was used with another body: take another key for another message")]
    Conflict(Key),
    /// The fleet keeps as many keys as it may.
    #[error("no further key can be kept now: keys are kept for 24 hours, up to 1,000,000 of them")]
    KeysFull,
    /// The store could not be reached in time, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store went away while the push was under way.
    #[error(transparent)]
    Interrupted(#[from] SubmitError),
}

/// One queue of a fleet.
pub struct Queue<T: ?Sized> {
    fleet: Fleet,
    name: Result<Name, InvalidMessage>,
    body: PhantomData<fn(&T)>,
}

impl<T: serde::Serialize + ?Sized> Queue<T> {
    pub(super) fn new(fleet: Fleet, name: &str) -> Self {
        Self { fleet, name: Name::new(name), body: PhantomData }
    }

    /// Pushes one message; pushes that wait at the same time travel together. Waits while the queue is full.
    ///
    /// # Errors
    /// [`PushError`]; all but [`PushError::Interrupted`] mean that nothing was stored.
    ///
    /// # Cancel safety
    /// A push that was begun may be stored whether or not the future is kept.
    pub async fn push(&self, body: &T) -> Result<MessageId, PushError> {
        self.push_lot(body, None).await
    }

    /// Pushes one message that exists once however often it is pushed under `key`, for 24 hours.
    ///
    /// # Errors
    /// As [`Queue::push`], and [`PushError::Conflict`] if the key stands for another body.
    ///
    /// # Cancel safety
    /// A push that was begun may be stored whether or not the future is kept.
    pub async fn push_once(&self, key: &Key, body: &T) -> Result<MessageId, PushError> {
        self.push_lot(body, Some(key)).await
    }

    async fn push_lot(&self, body: &T, key: Option<&Key>) -> Result<MessageId, PushError> {
        let queue = self.name.clone()?;
        let body = serde_json::to_vec(body)?;
        if body.len() > MAX_BODY_BYTES {
            return Err(InvalidMessage::BodyTooLarge { len: body.len(), limit: MAX_BODY_BYTES }.into());
        }
        let key = key.map(|key| LotKey { key: key.clone(), digest: Digest::of(&body) });
        let lot = Lot { queue, parcel: Parcel::single(&body)?, key };
        loop {
            let verdicts = match self.fleet.session().await?.submit(vec![lot.clone()], None).await {
                // The session was over before the lot was sent, or a key makes a second attempt harmless.
                Err(SubmitError { error: StoreError::Refused(Refusal::Stale), maybe_stored })
                    if !maybe_stored || lot.key.is_some() =>
                {
                    continue;
                }
                verdicts => verdicts?,
            };
            return match (verdicts.first(), &lot.key) {
                (Some(LotVerdict::Stored { first } | LotVerdict::Duplicate { first }), _) => Ok(MessageId(*first)),
                (Some(LotVerdict::Conflict), Some(key)) => Err(PushError::Conflict(key.key.clone())),
                (Some(LotVerdict::KeysFull), _) => Err(PushError::KeysFull),
                (Some(LotVerdict::Full), _) => {
                    tokio::time::sleep(FULL_PAUSE).await;
                    continue;
                }
                _ => Err(StoreError::Damaged("the store gave no verdict on a lot".to_owned()).into()),
            };
        }
    }
}

/// How long a push to a full queue waits before it looks again.
const FULL_PAUSE: Duration = Duration::from_millis(50);
