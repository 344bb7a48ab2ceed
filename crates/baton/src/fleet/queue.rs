//! Pushing bodies of one type to one queue.

use std::{borrow::Borrow, marker::PhantomData, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesOrdered};

use serde::de::DeserializeOwned;

use super::{CallOptions, Fleet};
use crate::{
    backoff::Backoff,
    message::{Body, CallId, InvalidMessage, Key, MessageId, Name, ParcelBuilder, Range, Submission},
    store::{ReadResult, Refusal, StoreError, SubmissionVerdict, session::SubmitError},
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
    /// The key was used with another body, or for another queue, while it lives.
    #[error("the key {:?} was used with another body or for another queue: take another key for another message", .0.as_str())]
    Conflict(Key),
    /// The fleet keeps as many keys as it may.
    #[error("no further key can be kept now: there are as many as there may be, and all of them live")]
    KeysFull,
    /// The queue held as many bytes as are allowed for as long as its room was waited for.
    #[error("queue {0} is full")]
    Full(Name),
    /// The store could not be reached in time, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store went away while the push was under way.
    #[error(transparent)]
    Interrupted(#[from] SubmitError),
}

/// Why a result was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The queue's name is not usable.
    #[error(transparent)]
    Invalid(#[from] InvalidMessage),
    /// It is not of the type that was asked for.
    #[error("the result is not of this type: {0}")]
    Json(#[from] serde_json::Error),
    /// The store could not be reached in time, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Some of many bodies were not pushed.
#[derive(Debug, thiserror::Error)]
#[error("{} of the messages are stored, then: {error}", .stored.iter().map(|range| u64::from(range.len)).sum::<u64>())]
pub struct PushAllError {
    /// What is stored for sure, as from [`Queue::push_all`].
    pub stored: Vec<Range>,
    /// What the first one not stored met.
    #[source]
    pub error: PushError,
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

    /// Pushes one message; pushes that wait at the same time travel together. Waits while the queue is full, and once this
    /// fleet has been joined also while the store is away, however long that takes: give it a timeout where a caller
    /// waits, and take [`Queue::push_once`] there, whose key makes another try harmless.
    ///
    /// # Errors
    /// [`PushError`]; all but [`PushError::Interrupted`] mean that nothing was stored.
    ///
    /// # Cancel safety
    /// A push that was begun may be stored whether or not the future is kept.
    pub async fn push(&self, body: &T) -> Result<MessageId, PushError> {
        self.push_submission(body, None).await
    }

    /// Pushes one message that exists once however often it is pushed under `key`, for 24 hours
    /// or as long as [`SessionOptions::key_lifetime`](crate::store::session::SessionOptions::key_lifetime) says.
    ///
    /// # Errors
    /// As [`Queue::push`], and [`PushError::Conflict`] if the key stands for another body, or for another queue.
    ///
    /// # Cancel safety
    /// A push that was begun may be stored whether or not the future is kept.
    pub async fn push_once(&self, key: &Key, body: &T) -> Result<MessageId, PushError> {
        self.push_submission(body, Some(key)).await
    }

    /// Pushes one message as a call: its events can be followed ([`Fleet::follow`]), and it can be cancelled
    /// ([`Fleet::cancel_call`]). It costs the store a few commands more than a plain message, and is kept for an hour after
    /// it has ended.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use baton::{CallOptions, Context, Done, Followed, Since, testing::TestFleet};
    ///
    /// let fleet = TestFleet::new();
    /// let call = fleet.queue::<u64>("count").call(&3, &CallOptions::default()).await?;
    /// let node = fleet.node().handler("count", async |upto: u64, context: Context| {
    ///     for n in 1..=upto {
    ///         context.emit("counted", &n).await?;
    ///     }
    ///     Ok(Done::with("ready")?)
    /// });
    /// fleet.settle(node).await?;
    /// let (mut follow, mut told) = (fleet.follow(&call, Since::Start), Vec::new());
    /// while let Followed::Events(chunk) = follow.next().await? {
    ///     told.extend(chunk.events().iter().map(|it| format!("{} {}", it.event, String::from_utf8_lossy(&it.data))));
    /// }
    /// assert_eq!(told, ["counted 1", "counted 2", "counted 3", "end \"ready\""]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Queue::push_once`].
    ///
    /// # Cancel safety
    /// As [`Queue::push`].
    pub async fn call(&self, body: &T, options: &CallOptions) -> Result<CallId, PushError> {
        let queue = self.name.clone()?;
        let submission = self.fleet.call_submission(&queue, &serde_json::to_vec(body)?, options)?;
        let (first, born) = self.hand_in(submission).await?;
        Ok(CallId { queue, id: MessageId(first), born })
    }

    /// Pushes many messages in parcels, several on their way at once: the fast way for more than a few. Gives ranges of
    /// ids, in the order of the bodies; `ranges.iter().flat_map(|range| range.ids())` lists each. Waits while the queue is full; what was refused meanwhile goes in later than what
    /// was not.
    ///
    /// # Errors
    /// [`PushAllError`] tells which messages are stored all the same. Nothing is pushed after the first that failed,
    /// except for what is on its way then.
    ///
    /// # Cancel safety
    /// What was begun may be stored whether or not the future is kept.
    pub async fn push_all<B: Borrow<T>>(
        &self, bodies: impl IntoIterator<Item = B>,
    ) -> Result<Vec<Range>, PushAllError> {
        let mut under_way = FuturesOrdered::new();
        let (mut stored, mut failed, mut bodies) = (Vec::new(), None, bodies.into_iter());
        let mut builder = ParcelBuilder::default();
        loop {
            while failed.is_none() && under_way.len() < UNDER_WAY {
                match self.pack(&mut builder, &mut bodies) {
                    Ok(Some(submission)) => {
                        under_way.push_back(async move { (submission.parcel.len(), self.hand_in(submission).await) })
                    }
                    Ok(None) => break,
                    Err(error) => failed = Some(error),
                }
            }
            match under_way.next().await {
                Some((len, Ok((first, _)))) => stored.push(Range { first, len }),
                Some((_, Err(error))) => failed = failed.or(Some(error)),
                None => {
                    return match failed {
                        None => Ok(stored),
                        Some(error) => Err(PushAllError { stored, error }),
                    };
                }
            }
        }
    }

    /// What the handler of a message has left with [`Done::with`](super::Done::with), for an hour after the message was
    /// done. None is kept if there is none yet or any more, if the handler left none, if it had over 1 MiB, or if the
    /// message is among the errors.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use baton::{Context, Done, testing::TestFleet};
    ///
    /// let fleet = TestFleet::new();
    /// let queue = fleet.queue::<u64>("squares");
    /// let id = queue.push(&7).await?;
    /// assert_eq!(queue.result::<u64>(id).await?, None);
    /// fleet.settle(fleet.node().handler("squares", async |n: u64, _: Context| Ok(Done::with(&(n * n))?))).await?;
    /// assert_eq!(queue.result::<u64>(id).await?, Some(49));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ResultError`]; a store that is away is waited for as long as the fleet's options say.
    pub async fn result<R: DeserializeOwned>(&self, id: MessageId) -> Result<Option<R>, ResultError> {
        let queue = self.name.clone()?;
        let result = self.fleet.ask(ReadResult { queue, id }).await?;
        Ok(result.map(|json| serde_json::from_slice(&json)).transpose()?)
    }

    /// The next parcel full of bodies; nothing if there are none left.
    fn pack<B: Borrow<T>>(
        &self, builder: &mut ParcelBuilder, bodies: &mut impl Iterator<Item = B>,
    ) -> Result<Option<Submission>, PushError> {
        let queue = self.name.clone()?;
        while builder.len() < PARCEL && builder.body_bytes() < PARCEL_BYTES {
            let Some(body) = bodies.next() else { break };
            builder.add(Body::new(&serde_json::to_vec(body.borrow())?)?)?;
        }
        Ok(builder.finish().map(|parcel| Submission { queue, parcel, key: None, call: None }))
    }

    async fn push_submission(&self, body: &T, key: Option<&Key>) -> Result<MessageId, PushError> {
        let queue = self.name.clone()?;
        let submission = self.fleet.single_submission(&queue, &serde_json::to_vec(body)?, key)?;
        self.hand_in(submission).await.map(|(first, _)| MessageId(first))
    }

    /// Hands a submission in until it is stored; its first id, and of a call its birth.
    async fn hand_in(&self, submission: Submission) -> Result<(u64, Option<u64>), PushError> {
        let (bytes, max_queue_bytes) = (submission.parcel.bytes().len() as u64, self.fleet.max_queue_bytes());
        let mut pauses = Backoff::new(FULL_PAUSES.0, FULL_PAUSES.1);
        loop {
            let session = self.fleet.session().await?;
            let verdicts = match session.submit(vec![submission.clone()], None).await {
                // The session was over before the submission was sent, or a key makes a second attempt harmless.
                Err(SubmitError { error: StoreError::Refused(Refusal::Stale), maybe_stored })
                    if !maybe_stored || submission.key.is_some() =>
                {
                    continue;
                }
                verdicts => verdicts?,
            };
            return match (verdicts.first(), &submission.key) {
                (Some(SubmissionVerdict::Stored { first } | SubmissionVerdict::Duplicate { first }), _) => {
                    Ok((*first, None))
                }
                (Some(SubmissionVerdict::Begun { first, born } | SubmissionVerdict::Known { first, born }), _) => {
                    Ok((*first, Some(*born)))
                }
                (Some(SubmissionVerdict::Conflict), Some(key)) => Err(PushError::Conflict(key.key.clone())),
                (Some(SubmissionVerdict::KeysFull), _) => Err(PushError::KeysFull),
                (Some(SubmissionVerdict::Full), _) => {
                    tokio::time::sleep(pauses.pause()).await;
                    while !session.has_room(&submission.queue, None, bytes, max_queue_bytes).await {
                        tokio::time::sleep(pauses.pause()).await;
                    }
                    continue;
                }
                _ => Err(StoreError::Damaged("the store gave no verdict on a submission".to_owned()).into()),
            };
        }
    }
}

/// Messages in a parcel of many.
const PARCEL: usize = 512;
/// Body bytes after which a parcel is sent with fewer.
const PARCEL_BYTES: usize = 256 << 10;
/// Parcels under way at once; the session sends those that wait together.
const UNDER_WAY: usize = 64;
/// How long a push to a full queue waits before it asks for room, at first and at most.
const FULL_PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Done, fleet::FleetOptions, message::MAX_BODY_BYTES, store::MemoryStore};

    #[tokio::test]
    async fn the_limit_of_a_body_holds_for_every_way_in() {
        let options = FleetOptions::new(Name::new("test").unwrap());
        let fleet = Fleet::over(std::sync::Arc::new(MemoryStore::default()), options);
        let (largest, over) = ("x".repeat(MAX_BODY_BYTES - 2), "x".repeat(MAX_BODY_BYTES - 1));
        let queue = fleet.queue::<str>("q");
        let refused = InvalidMessage::BodyTooLarge { len: MAX_BODY_BYTES + 1, limit: MAX_BODY_BYTES };
        let is_refused = |error: PushError| matches!(error, PushError::Invalid(invalid) if invalid == refused);
        queue.push(&largest).await.unwrap();
        assert!(is_refused(queue.push(&over).await.unwrap_err()));
        let (key, small) = (Key::new("k").unwrap(), "x");
        queue.push_once(&key, small).await.unwrap();
        let conflict = queue.push_once(&key, "y").await.unwrap_err().to_string();
        assert!(conflict.starts_with("the key \"k\" was used with another body"), "{conflict}");
        assert!(is_refused(queue.push_once(&Key::new("k").unwrap(), &over).await.unwrap_err()));
        let some = queue.push_all([&largest[..], &over[..]]).await.unwrap_err();
        assert!(is_refused(some.error));
        Done::default().then("q", &largest[..]).unwrap();
        assert!(Done::default().then("q", &over[..]).unwrap_err().error.contains("over the limit of 1048576 bytes"));
        let mut batch = Batch::default();
        assert_eq!(batch.add(format!("\"{over}\"").as_bytes()).unwrap_err(), refused);
    }
}
