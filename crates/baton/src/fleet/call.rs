//! Calls as those who make them see them: begin one, look how it stands, cancel it. Following is in `follow`.

use std::time::Duration;

use bytes::Bytes;

use super::Fleet;
use crate::{
    message::{Body, CallId, Calling, Digest, InvalidMessage, Key, Name, Parcel, Submission, SubmissionKey, cause},
    store::{CallState, CallView, CancelCall, Cancelling, ReadCall, StoreError},
};

/// How a call is made ([`Queue::call`](super::Queue::call)). By default each is its own, and goes on whoever follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// The same key and body again are the same call, for as long as keys live; another body is refused.
    pub key: Option<Key>,
    /// Whether equal bodies to one queue are one call as long as that has not ended; a later one begins anew.
    pub share: bool,
    /// After so long without a follower the call is cancelled; without a time it goes on. A process that dies with its
    /// followers is noticed after its lease, and its calls are looked at once in this time: they may go on for twice as
    /// long.
    pub linger: Option<Duration>,
}

impl CallOptions {
    /// What the submission of such a call is.
    fn calling(&self) -> Calling {
        let linger_ms = self.linger.map(|linger| u64::try_from(linger.as_millis()).unwrap_or(u64::MAX >> 1));
        Calling::Begins { linger_ms: linger_ms.map(|ms| ms.min(MAX_LINGER_MS)), share: self.share }
    }

    /// The key that it has, its own or one that follows from its body.
    fn key(&self, queue: &Name, body: &[u8]) -> Result<Option<Key>, InvalidMessage> {
        match &self.key {
            None if self.share => Key::new(&format!("share:{queue}:{}", Digest::of(body))).map(Some),
            key => Ok(key.clone()),
        }
    }
}

/// The longest time that a call goes on without a follower before it is cancelled.
const MAX_LINGER_MS: u64 = 366 * 24 * 3_600_000;

/// How a call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStatus {
    /// Its state.
    pub state: CallState,
    /// When its first message was pushed, by the store's clock in milliseconds: the last part of [`CallId`].
    pub born: u64,
    /// What its first message left with [`Done::with`](super::Done::with), once all of its messages are done.
    pub result: Option<Bytes>,
    /// Why it is dead, in a line; `Admin::errors` has all of it.
    pub error: Option<String>,
    /// The first event that is kept.
    pub first: u64,
    /// The number that its next event gets: those below it were told.
    pub next: u64,
}

impl From<CallView> for CallStatus {
    fn from(CallView { state, born, outcome, first, next }: CallView) -> Self {
        let (result, error) = match state {
            CallState::Failed => (None, outcome.map(|why| cause(&String::from_utf8_lossy(&why)).to_owned())),
            _ => (outcome, None),
        };
        Self { state, born, result, error, first, next }
    }
}

impl Fleet {
    /// What begins a call with this JSON as its body, to be handed in by [`Fleet::session`] where
    /// [`Queue::call`](super::Queue::call), which waits for room, will not do.
    ///
    /// # Errors
    /// If the body is too large.
    pub fn call_submission(
        &self, queue: &Name, body: &[u8], options: &CallOptions,
    ) -> Result<Submission, InvalidMessage> {
        let key = options.key(queue, body)?;
        let single = self.single_submission(queue, body, key.as_ref())?;
        Ok(Submission { call: Some(options.calling()), ..single })
    }

    /// A message with this JSON as its body, that exists once if it has a key.
    pub(crate) fn single_submission(
        &self, queue: &Name, body: &[u8], key: Option<&Key>,
    ) -> Result<Submission, InvalidMessage> {
        let lives_ms = u64::try_from(self.options.session.key_lifetime.as_millis()).unwrap_or(u64::MAX);
        let key = key.map(|key| SubmissionKey { key: key.clone(), digest: Digest::of(body), lives_ms });
        let parcel = Parcel::single(Body::new(body)?);
        Ok(Submission { queue: queue.clone(), parcel, key, call: None })
    }

    /// How a call stands; nothing if there is none of this id, or it ended over an hour ago.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it; [`Refusal::OtherCall`](crate::store::Refusal::OtherCall) if the
    /// store has lost data and the id is another message's by now.
    pub async fn call_status(&self, call: &CallId) -> Result<Option<CallStatus>, StoreError> {
        Ok(self.ask(ReadCall { call: call.clone() }).await?.map(CallStatus::from))
    }

    /// Cancels a call: those of its messages that wait are not run, those that are delayed end at once, handlers at work on others are broken off within a
    /// heartbeat of their node. What is done or dead by then stays so, and if that is all of it, so does the call. Its
    /// last event tells how it ended.
    ///
    /// # Errors
    /// As [`Fleet::call_status`].
    pub async fn cancel_call(&self, call: &CallId) -> Result<Cancelling, StoreError> {
        loop {
            match self.ask(CancelCall { call: call.clone(), if_forsaken: false }).await? {
                Cancelling::More => {}
                cancelling => return Ok(cancelling),
            }
        }
    }
}
