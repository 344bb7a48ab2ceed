//! Single messages that a caller waits for, as calls or under a key: stored within the time to wait, or not at all.

use std::time::Duration;

use serde::Serialize;

use super::{Admin, import::Receipt, patience::Patience, wording::size};
use crate::{
    CallOptions, PushError,
    backoff::Backoff,
    message::{CallId, Key, MessageId, Name, Submission},
    store::{
        Refusal, StoreError, SubmissionVerdict,
        session::{Session, SubmitError},
    },
};

/// How long a call waits before it is tried again where there was no room, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

impl Admin {
    /// Begins a call as [`Queue::call`](crate::Queue::call) does. A full queue and a store that is away or has no room are
    /// waited for, for the admin's time to wait at most, which a [`Note`](super::Note) tells.
    ///
    /// # Errors
    /// [`PushError`]; all but [`PushError::Interrupted`] mean that nothing was stored.
    ///
    /// # Cancel safety
    /// A call that was sent may be stored when this is dropped; one that still waits for room is not.
    pub async fn call<T: Serialize + ?Sized>(
        &self, queue: &Name, body: &T, options: &CallOptions,
    ) -> Result<CallId, PushError> {
        let submission = self.fleet().call_submission(queue, &serde_json::to_vec(body)?, options)?;
        match self.hand_in_patiently(&submission).await? {
            SubmissionVerdict::Begun { first, born } | SubmissionVerdict::Known { first, born } => {
                Ok(CallId { queue: queue.clone(), id: MessageId(first), born: Some(born) })
            }
            _ => Err(no_verdict()),
        }
    }

    /// Pushes one message that exists once however often it is pushed under the key, as
    /// [`Queue::push_once`](crate::Queue::push_once) does, and says whether it was there. It waits as [`Admin::call`] does.
    ///
    /// # Errors
    /// As [`Admin::call`], and [`PushError::Conflict`] if the key stands for another body, or for another queue.
    pub async fn push_once<T: Serialize + ?Sized>(
        &self, queue: &Name, key: &Key, body: &T,
    ) -> Result<Receipt, PushError> {
        let submission = self.fleet().single_submission(queue, &serde_json::to_vec(body)?, Some(key))?;
        let (first, pushed) = match self.hand_in_patiently(&submission).await? {
            SubmissionVerdict::Stored { first } => (first, 1),
            SubmissionVerdict::Duplicate { first } => (first, 0),
            _ => return Err(no_verdict()),
        };
        let id = Some(MessageId(first));
        Ok(Receipt { pushed, duplicates: 1 - pushed, first_id: id, last_id: id, queue: queue.clone() })
    }

    /// Hands a submission in until the store has judged it, for the time to wait at most.
    async fn hand_in_patiently(&self, submission: &Submission) -> Result<SubmissionVerdict, PushError> {
        let queue = &submission.queue;
        let (bytes, mut pauses) = (submission.parcel.bytes().len() as u64, Backoff::new(PAUSES.0, PAUSES.1));
        let mut patience = Patience::new(self.wait);
        loop {
            let session = self.session().await?;
            let in_the_way = match self.hand_in(&session, submission).await {
                Ok(verdict) => match (verdict, &submission.key) {
                    (Some(SubmissionVerdict::Full), _) => PushError::Full(queue.clone()),
                    (Some(SubmissionVerdict::KeysFull), _) => return Err(PushError::KeysFull),
                    (Some(SubmissionVerdict::Conflict), Some(key)) => return Err(PushError::Conflict(key.key.clone())),
                    (Some(verdict), _) => return Ok(verdict),
                    (None, _) => return Err(no_verdict()),
                },
                // The session was over before the submission was sent, or a key makes a second attempt harmless.
                Err(SubmitError { error: StoreError::Refused(Refusal::Stale), maybe_stored })
                    if !maybe_stored || submission.key.is_some() =>
                {
                    continue;
                }
                Err(SubmitError { error: error @ StoreError::NoRoom(_), maybe_stored: false }) => error.into(),
                Err(error) => return Err(error.into()),
            };
            loop {
                let why = match &in_the_way {
                    PushError::Full(_) => {
                        format!("{in_the_way}: it holds its bound of {}", size(self.fleet.max_queue_bytes()))
                    }
                    other => other.to_string(),
                };
                if patience.worn_out(self, &why) {
                    return Err(in_the_way);
                }
                tokio::time::sleep(pauses.pause()).await;
                // The body goes to a full queue again only when that has room.
                if !matches!(in_the_way, PushError::Full(_)) || self.has_room(queue, bytes).await != Ok(false) {
                    break;
                }
            }
        }
    }

    /// Hands a submission in once, and waits for the verdict while there is hope.
    async fn hand_in(
        &self, session: &Session, submission: &Submission,
    ) -> Result<Option<SubmissionVerdict>, SubmitError> {
        let submit = async { Ok(session.submit_if_room(vec![submission.clone()]).await) };
        match self.attend(session, submit).await {
            Ok(verdicts) => Ok(verdicts?.into_iter().next()),
            Err(error) => Err(SubmitError { error, maybe_stored: true }),
        }
    }
}

fn no_verdict() -> PushError {
    StoreError::Damaged("the store gave no verdict on a submission".to_owned()).into()
}
