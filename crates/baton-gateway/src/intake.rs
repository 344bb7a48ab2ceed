//! The way of messages into the store. They are stored when this says so; if it says that a queue is full or the store
//! is away, they are not; and if it cannot know, it says that.
//!
//! A request that comes while the store is away waits for it with a seat of the line in `readiness`. The seat is taken
//! before the body is read, and holds the bytes that came in.

use std::sync::Arc;

use axum::http::StatusCode;
use baton::{
    CallId, CallOptions, Fleet, MessageId, Name, StoreError,
    deferred::Unready,
    store::{Refusal, SubmissionVerdict, message::Submission, session::SubmitError},
};
use tokio::time::timeout;

use crate::{problem::Problem, readiness::StoreSeat, state::State};

/// The outcome of a request that stores something, and of one that is safe to repeat.
const UNSTORED: &str = "nothing was stored";
pub(crate) const REPEATABLE: &str = "it is safe to ask again";

/// The code of what may be stored or not.
pub(crate) const MAYBE_STORED: &str = "maybe-stored";
/// The code of an upload whose first lines are gone.
pub(crate) const DATA_LOST: &str = "data-lost";

/// How often a call is repeated that the store has not carried out.
const ATTEMPTS: usize = 8;

/// Messages that the store has.
pub(crate) struct Stored {
    /// The first id.
    pub(crate) first: u64,
    /// The store's time of the push, if this is a call.
    pub(crate) born: Option<u64>,
    /// Whether the store has them from now on, and not from before under their key.
    pub(crate) is_new: bool,
    /// The incarnation of the data that holds them.
    pub(crate) data: Arc<str>,
}

impl State {
    /// A seat for a request whose body, of this length, has yet to come: there is room for it now.
    pub(crate) fn seat(&self, awaited: usize) -> Result<StoreSeat, Problem> {
        let mut seat = self.readiness.store.seat(awaited).map_err(unready)?;
        seat.hold(0).map_err(unready)?;
        Ok(seat)
    }

    /// Stores one message as a call; which one it is, and whether it is new.
    pub(crate) async fn store_call(
        &self, seat: &mut StoreSeat, queue: &Name, body: &[u8], options: &CallOptions,
    ) -> Result<(CallId, bool), Problem> {
        let submission = self.fleet.call_submission(queue, body, options);
        let submission = submission.map_err(|_| crate::body::too_large(self.limits.message_bytes))?;
        let Stored { first, born, is_new, .. } = self.store_submission(seat, submission, None).await?;
        Ok((CallId { queue: queue.clone(), id: MessageId(first), born }, is_new))
    }

    /// Stores messages, only in this data if one is named. Waits for a store that is away as long as the seat allows,
    /// and for no room in a queue.
    pub(crate) async fn store_submission(
        &self, seat: &mut StoreSeat, submission: Submission, data: Option<&Arc<str>>,
    ) -> Result<Stored, Problem> {
        seat.hold(submission.parcel.bytes().len()).map_err(unready)?;
        for _ in 0..ATTEMPTS {
            let handed_in =
                seat.call(|fleet| timeout(self.limits.store_time, hand_in(fleet, submission.clone(), data))).await;
            let (verdict, data) = match handed_in.map_err(unready)? {
                Err(_) => return Err(maybe_stored("the store did not answer in time")),
                Ok(Ok(HandedIn::Judged(verdict, data))) => (verdict, data),
                Ok(Ok(HandedIn::OtherData)) => return Err(data_lost()),
                // It was over before the submission was sent, or the key makes another attempt harmless.
                Ok(Err(SubmitError { error: StoreError::Refused(Refusal::Stale), maybe_stored }))
                    if !maybe_stored || submission.key.is_some() =>
                {
                    continue;
                }
                Ok(Err(SubmitError { maybe_stored: true, .. })) => return Err(maybe_stored("the store went away")),
                Ok(Err(SubmitError { error: StoreError::Unreachable(_), .. })) => {
                    self.readiness.doubt();
                    continue;
                }
                Ok(Err(SubmitError { error, .. })) => return Err(of_store(&error)),
            };
            return match verdict {
                Some(SubmissionVerdict::Stored { first }) => Ok(Stored { first, born: None, is_new: true, data }),
                Some(SubmissionVerdict::Duplicate { first }) => Ok(Stored { first, born: None, is_new: false, data }),
                Some(SubmissionVerdict::Begun { first, born }) => {
                    Ok(Stored { first, born: Some(born), is_new: true, data })
                }
                Some(SubmissionVerdict::Known { first, born }) => {
                    Ok(Stored { first, born: Some(born), is_new: false, data })
                }
                Some(SubmissionVerdict::Full) => Err(self.full(&submission.queue).await),
                Some(SubmissionVerdict::Conflict) => Err(Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "key-used",
                    "the Idempotency-Key was used with another body or for another queue; take another key",
                )),
                Some(SubmissionVerdict::KeysFull) => Err(Problem::trouble(
                    "keys-full",
                    "the store holds as many idempotency keys as it may; try again when some have expired, or raise BATON_MAX_KEYS",
                )),
                _ => Err(of_store(&StoreError::Damaged("no verdict on a submission".to_owned()))),
            };
        }
        Err(away())
    }

    /// The store's answer to a question that is safe to repeat; waits for a store that is away.
    pub(crate) async fn asked<T, F: Future<Output = Result<T, StoreError>>>(
        &self, ask: impl Fn(Fleet) -> F,
    ) -> Result<T, Problem> {
        self.answered(ask).await.map_err(|problem| problem.leaving_instead(REPEATABLE))
    }

    async fn answered<T, F: Future<Output = Result<T, StoreError>>>(
        &self, ask: impl Fn(Fleet) -> F,
    ) -> Result<T, Problem> {
        let mut seat = self.seat(0)?;
        for _ in 0..ATTEMPTS {
            match seat.call(|fleet| timeout(self.limits.store_time, ask(fleet))).await.map_err(unready)? {
                Ok(Err(StoreError::Unreachable(_))) => self.readiness.doubt(),
                Ok(answered) => return answered.map_err(|error| of_store(&error)),
                Err(_) => break,
            }
        }
        Err(away())
    }

    /// That the queue has no room, and when it may.
    async fn full(&self, queue: &Name) -> Problem {
        let obstacle = self.view.now().await.and_then(|view| view.obstacle(queue));
        let seconds = self.view.paces().until_room(queue);
        let detail = match obstacle {
            Some(obstacle) => format!("queue {queue} is full: {obstacle}"),
            None => format!("queue {queue} is full; try again later, or start more workers"),
        };
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "queue-full", detail).after(seconds)
    }
}

/// The store's reply to messages.
enum HandedIn {
    /// The verdict on them, and the data that it is of.
    Judged(Option<SubmissionVerdict>, Arc<str>),
    /// The data that they were for is not there any more. They were not handed in.
    OtherData,
}

/// Hands messages in, only to this data if one is named. A session is of one data to its end.
async fn hand_in(fleet: Fleet, submission: Submission, wanted: Option<&Arc<str>>) -> Result<HandedIn, SubmitError> {
    let session = fleet.session().await.map_err(|error| SubmitError { error, maybe_stored: false })?;
    let data = session.incarnation();
    if wanted.is_some_and(|wanted| *wanted != data) {
        return Ok(HandedIn::OtherData);
    }
    Ok(HandedIn::Judged(session.submit_if_room(vec![submission]).await?.into_iter().next(), data))
}

/// A store's failure as callers see it; its own words, which name hosts and paths, are for the log of nodes.
pub(crate) fn of_store(error: &StoreError) -> Problem {
    match error {
        StoreError::NoRoom(_) => {
            Problem::trouble("no-room", "the store takes no new messages at the moment; `baton status` says why")
                .leaving(UNSTORED)
        }
        StoreError::Unreachable(_) | StoreError::Refused(Refusal::Held { .. } | Refusal::Stale) => away(),
        StoreError::Refused(Refusal::OtherCall) => other_message(),
        StoreError::Refused(_) => {
            Problem::trouble("store-refuses", "the store refuses the request; `baton status` says why")
        }
        StoreError::Unfit(_) => Problem::trouble(
            "store-unfit",
            "the store cannot be used, e.g. because its format is another; `baton status` says why",
        ),
        _ => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store",
            "the store cannot be used; `baton status` says why",
        ),
    }
}

/// That the message which was meant went with data that the store has lost.
pub(crate) fn other_message() -> Problem {
    let detail = "the store lost data after this message was pushed, and another message has its id now; push it again if it may run twice";
    Problem::new(StatusCode::GONE, "other-message", detail)
}

/// That the first lines of an upload went with data that the store has lost.
pub(crate) fn data_lost() -> Problem {
    let detail = "the store lost data during the upload, and its first lines with it; push the whole input again";
    Problem::new(StatusCode::GONE, DATA_LOST, detail)
}

/// That a message was stored and is not known any more.
pub(crate) fn lost() -> Problem {
    let detail =
        "the store lost data, and this message with it, before the message ended; push it again if it may run twice";
    Problem::new(StatusCode::GONE, "gone", detail)
}

pub(crate) fn away() -> Problem {
    Problem::trouble("store-away", "the store does not answer").leaving(UNSTORED)
}

/// Why a request that waited for the store did not get there.
pub(crate) fn unready(unready: Unready<StoreError>) -> Problem {
    match unready {
        Unready::Full => {
            let detail = "the store does not answer, and as many requests wait for it as are allowed";
            Problem::trouble("store-away", detail).leaving(UNSTORED)
        }
        Unready::Failed(error) => of_store(&error),
        _ => away(),
    }
}

/// A repeated message may be a second one, which only its sender can judge.
fn maybe_stored(why: &str) -> Problem {
    let detail =
        format!("{why}: the message may be stored; it is safe to repeat the request only with an Idempotency-Key");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, MAYBE_STORED, detail)
}
