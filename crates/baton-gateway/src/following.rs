//! A call as it is followed: a source of a stream, in one of the forms of events.
//!
//! It has no task and no channel: it is polled by its connection, and waits in the call's log with all other followers.
//! Between two parts of the body it holds nothing that others wait for, so a peer that reads slowly holds up no other.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use baton::{CallId, CallState, Fleet, Follow, FollowError, Followed, Since, StoreError};
use tokio::{
    runtime::Handle,
    time::{Duration, Instant, sleep, timeout},
};

use crate::{
    admission::Admission,
    forms::Form,
    intake::{REPEATABLE, of_store, other_message},
    problem::Problem,
    room::StreamPermit,
    state::{Shared, State},
    stream::{Part, Source, TimeLimit, respond},
};

/// How long a store that went away is waited for, and how often it is tried.
const OUTAGE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(250);

/// How long the store may take to say how a call stands that tells nothing.
const STATUS_TIME: Duration = Duration::from_secs(1);

/// What is to be streamed.
pub(crate) struct Streaming {
    pub(crate) call: CallId,
    pub(crate) since: Since,
    pub(crate) form: Form,
    /// Whether no other follower can want it: it is cancelled when its follower leaves before its end.
    pub(crate) forsaken: bool,
    /// How long it may take; then it is cancelled.
    pub(crate) limit: Option<TimeLimit>,
}

impl Streaming {
    /// The response that follows the call. Its place was taken before anything was stored: from then on it cannot be
    /// refused.
    pub(crate) fn respond(self, state: &Shared, admission: &Admission, room: StreamPermit) -> Response<Body> {
        let Self { call, since, form, forsaken, limit } = self;
        let location = place(&call);
        let following = Following {
            follow: state.fleet.follow(&call, since),
            form,
            state: Arc::clone(state),
            has_begun: false,
            away_since: None,
            cancels: Cancels { fleet: state.fleet.clone(), home: Handle::current(), call, wanted: forsaken },
        };
        let mut response = respond(following, form, limit, state, admission, room);
        response.headers_mut().extend(location.map(|location| (header::LOCATION, location)));
        response
    }
}

/// Where a call is looked at. A name and numbers make a header.
pub(crate) fn place(call: &CallId) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("/messages/{call}")).ok()
}

/// See the module.
struct Following {
    follow: Follow,
    form: Form,
    state: Shared,
    /// Whether an event was read.
    has_begun: bool,
    /// Since when the store is away.
    away_since: Option<Instant>,
    cancels: Cancels,
}

impl Source for Following {
    async fn next(&mut self) -> Part {
        match self.follow.next().await {
            Ok(followed) => self.took(followed),
            Err(error) => self.failed(error).await,
        }
    }

    async fn silence(&mut self) -> Bytes {
        let why = if self.has_begun { None } else { self.state.why_waits(&self.cancels.call).await };
        why.map_or_else(|| self.form.breath(), |why| self.form.waiting(&why))
    }

    fn position(&self) -> Option<u64> {
        self.follow.position()
    }

    fn time_over(&mut self) {
        self.cancels.wanted = true;
    }
}

impl Following {
    fn took(&mut self, followed: Followed) -> Part {
        (self.away_since, self.has_begun) = (None, true);
        match followed {
            Followed::Events(chunk) => {
                let bytes = self.form.chunk(self.follow.call(), &chunk);
                if chunk.events().last().is_some_and(baton::CallEvent::is_last) {
                    self.ended(bytes)
                } else {
                    Part::Further(bytes)
                }
            }
            Followed::Gap { next } => Part::Further(self.form.gap(self.follow.call(), next)),
            Followed::End => self.ended(Bytes::new()),
        }
    }

    /// The last part of a call that needs no cancelling.
    const fn ended(&mut self, bytes: Bytes) -> Part {
        self.cancels.wanted = false;
        Part::Last(bytes)
    }

    async fn failed(&mut self, error: FollowError) -> Part {
        let problem = match error {
            // A follower that joins late gets the same event as one that reads slowly.
            FollowError::Gone { call, first } => {
                self.follow.rejoin(Since::Number(first));
                return Part::Further(self.form.gap(&call, first));
            }
            FollowError::Other(_) => other_message(),
            FollowError::Store(error) if is_outage(&error) => {
                if self.away_since.get_or_insert_with(Instant::now).elapsed() < OUTAGE {
                    sleep(AGAIN).await;
                    return Part::Further(Bytes::new());
                }
                of_store(&error).leaving_instead(REPEATABLE)
            }
            FollowError::Store(error) => of_store(&error).leaving_instead(REPEATABLE),
            error => Problem::new(StatusCode::GONE, "gone", error.to_string()),
        };
        Part::Last(self.form.failure(&problem.json()))
    }
}

fn is_outage(error: &StoreError) -> bool {
    error.is_retryable() || matches!(error, StoreError::Refused(baton::store::Refusal::Stale))
}

/// Cancels a call when it is dropped, if that is wanted.
struct Cancels {
    fleet: Fleet,
    /// The runtime of the gateway: it is dropped on a thread that may be about to end.
    home: Handle,
    call: CallId,
    wanted: bool,
}

impl Drop for Cancels {
    fn drop(&mut self) {
        if !self.wanted {
            return;
        }
        let (fleet, call) = (self.fleet.clone(), self.call.clone());
        // If it fails, the call's own time without a follower does the rest.
        self.home.spawn(async move { fleet.cancel_call(&call).await.ok() });
    }
}

impl State {
    /// Why a call that tells nothing waits; nothing if it runs, or if no reason is known.
    async fn why_waits(&self, call: &CallId) -> Option<String> {
        let view = self.view.now().await?;
        let why = view.why_unended(&call.queue, CallState::Ready)?;
        // Without a node it waits. Otherwise it may run: only the store can tell.
        if view.nodes_of(&call.queue) > 0 {
            let status = timeout(STATUS_TIME, self.fleet.call_status(call)).await.ok()?.ok()??;
            return view.why_unended(&call.queue, status.state).filter(|_| status.state != CallState::InFlight);
        }
        Some(why)
    }

    /// Waits until a call has ended, for this time at most, and not when the gateway stops.
    pub(crate) async fn until_ended(&self, call: &CallId, time: Duration) {
        let (mut follow, mut closing) = (self.fleet.follow(call, Since::Now), self.closing.subscribe());
        let ended = async {
            loop {
                match follow.next().await {
                    Ok(Followed::End) => return,
                    Ok(Followed::Events(chunk)) if chunk.events().last().is_some_and(baton::CallEvent::is_last) => {
                        return;
                    }
                    Ok(_) => {}
                    Err(FollowError::Store(error)) if is_outage(&error) => sleep(AGAIN).await,
                    Err(_) => return,
                }
            }
        };
        tokio::select! {
            () = ended => {}
            () = sleep(time) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }
}
