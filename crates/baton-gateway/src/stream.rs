//! A call as it is followed: the body of a response, in one of the forms of events.
//!
//! It has no task and no channel: it is polled by its connection, and waits in the call's log with all others. Between two
//! parts of the body it holds nothing that others wait for, so a peer that reads slowly holds up nobody.
//!
//! It ends with the last event of its call, with a failure that is told, or, when the gateway stops, with a word of that. A
//! token that was revoked lets nothing more be read.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use baton::{CallId, Fleet, Follow, FollowError, Followed, Since, StoreError};
use futures_util::stream;
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Duration, Instant, sleep, sleep_until},
};

use crate::{
    admission::{Admission, Validity},
    forms::Form,
    intake::{REPEATABLE, of_store, other_message},
    problem::Problem,
    room::StreamPermit,
    state::{Shared, State},
};

/// After how long without an event it is shown that the way is open.
pub(crate) const BREATH: Duration = Duration::from_secs(15);
/// How long a store that went away is waited for, and how often it is tried.
const OUTAGE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(250);

/// What is to be streamed.
pub(crate) struct Streaming {
    pub(crate) call: CallId,
    pub(crate) since: Since,
    pub(crate) form: Form,
    /// Whether nobody else can want it: it is cancelled when its follower leaves before its end.
    pub(crate) forsaken: bool,
    /// How long it may take; then it is cancelled.
    pub(crate) time: Option<Duration>,
}

impl Streaming {
    /// The response that follows the call. Its place was taken before anything was stored: from then on it cannot be refused.
    pub(crate) fn respond(self, state: &Shared, admission: &Admission, room: StreamPermit) -> Response<Body> {
        admission.streams(room);
        let Self { call, since, form, forsaken, time } = self;
        let location = place(&call);
        let followed = Stream {
            follow: state.fleet.follow(&call, since),
            form,
            state: Arc::clone(state),
            validity: admission.validity(),
            closing: state.closing.subscribe(),
            greeted: false,
            away_since: None,
            over: false,
            bound: time.map(|time| Bound { time, until: Instant::now() + time }),
            cancels: Cancels { fleet: state.fleet.clone(), home: Handle::current(), call, wanted: forsaken },
        };
        let body = stream::unfold(followed, |mut followed| async {
            let bytes = followed.next().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), followed))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, form.content_type());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        headers.extend(location.map(|location| (header::LOCATION, location)));
        response
    }
}

/// Where a call is looked at. A name and numbers make a header.
pub(crate) fn place(call: &CallId) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("/messages/{call}")).ok()
}

/// See the module.
struct Stream {
    follow: Follow,
    form: Form,
    state: Shared,
    /// How long it may be read.
    validity: Option<Validity>,
    closing: watch::Receiver<bool>,
    greeted: bool,
    /// Since when the store is away.
    away_since: Option<Instant>,
    over: bool,
    bound: Option<Bound>,
    cancels: Cancels,
}

/// How long a call may take.
#[derive(Clone, Copy)]
struct Bound {
    time: Duration,
    until: Instant,
}

impl Bound {
    async fn over(bound: Option<Self>) -> Duration {
        match bound {
            Some(Self { time, until }) => {
                sleep_until(until).await;
                time
            }
            None => std::future::pending().await,
        }
    }
}

/// What comes first.
enum Turn {
    Followed(Result<Followed, FollowError>),
    Silence,
    Closes,
    Revoked,
    TimeOver(Duration),
}

impl Stream {
    /// The next part of the body, which is never empty; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            let greeting = self.form.greeting();
            if !greeting.is_empty() {
                return Some(greeting);
            }
        }
        while !self.over {
            let turn = tokio::select! {
                biased;
                _ = self.closing.wait_for(|closing| *closing) => Turn::Closes,
                () = Validity::ends(&mut self.validity, &self.state) => Turn::Revoked,
                time = Bound::over(self.bound) => Turn::TimeOver(time),
                followed = self.follow.next() => Turn::Followed(followed),
                () = sleep(BREATH) => Turn::Silence,
            };
            let bytes = match turn {
                Turn::Followed(Ok(followed)) => self.took(followed),
                Turn::Followed(Err(error)) => self.failed(error).await,
                Turn::Silence => self.form.breath(),
                Turn::Closes => {
                    self.over = true;
                    self.form.farewell(self.follow.position())
                }
                Turn::Revoked => {
                    self.over = true;
                    self.form.failure(&Validity::ended().json())
                }
                Turn::TimeOver(time) => {
                    self.over = true;
                    self.cancels.wanted = true;
                    self.form.failure(&out_of_time(time).json())
                }
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }

    fn took(&mut self, followed: Followed) -> Bytes {
        self.away_since = None;
        match followed {
            Followed::Events(chunk) => {
                if chunk.events().last().is_some_and(baton::CallEvent::is_last) {
                    self.ends();
                }
                self.form.chunk(self.follow.call(), &chunk)
            }
            Followed::Gap { next } => self.form.gap(self.follow.call(), next),
            Followed::End => {
                self.ends();
                Bytes::new()
            }
        }
    }

    async fn failed(&mut self, error: FollowError) -> Bytes {
        let problem = match error {
            // Those who join late are told so as those who are slow.
            FollowError::Gone { call, first } => {
                self.follow.rejoin(Since::Number(first));
                return self.form.gap(&call, first);
            }
            FollowError::Other(_) => other_message(),
            FollowError::Store(error) if is_outage(&error) => {
                if self.away_since.get_or_insert_with(Instant::now).elapsed() < OUTAGE {
                    sleep(AGAIN).await;
                    return Bytes::new();
                }
                of_store(&error).leaving_instead(REPEATABLE)
            }
            FollowError::Store(error) => of_store(&error).leaving_instead(REPEATABLE),
            error => Problem::new(StatusCode::GONE, "gone", error.to_string()),
        };
        self.over = true;
        self.form.failure(&problem.json())
    }

    fn ends(&mut self) {
        self.over = true;
        self.cancels.wanted = false;
    }
}

fn is_outage(error: &StoreError) -> bool {
    error.is_retryable() || matches!(error, StoreError::Refused(baton::store::Refusal::Stale))
}

/// That a search took too long.
pub(crate) fn out_of_time(time: Duration) -> Problem {
    let detail = format!(
        "the search was not finished after {time:?} and was ended: give limit=1000 or count_only=true, or start `baton up` with a \
         longer --search-timeout"
    );
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail)
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
    /// Waits until a call has ended, so long at most, and not when the gateway stops.
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
