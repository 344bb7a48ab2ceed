//! Bodies that stream: the loop that every source of events shares.
//!
//! A stream ends with the last part of its source, or with an event that says why it ends before: the gateway stops,
//! the token was revoked, or the time is over. While the source is silent, the peer gets a sign that the connection is
//! open.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, StatusCode, header},
};
use futures_util::stream;
use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep, sleep_until},
};

use crate::{
    admission::{Admission, Validity},
    forms::Form,
    problem::Problem,
    room::StreamPermit,
    state::Shared,
};

/// The longest silence before the peer gets a sign that the connection is open.
const SILENCE: Duration = Duration::from_secs(15);
/// The same at the beginning: a source that waits for something can say so.
const FIRST_SILENCE: Duration = Duration::from_secs(2);

/// A part of a body; it may be empty.
pub(crate) enum Part {
    /// More may follow.
    Further(Bytes),
    /// The last one.
    Last(Bytes),
}

/// Where the parts of a body come from.
pub(crate) trait Source: Send + 'static {
    /// The next part.
    ///
    /// # Cancel safety
    /// It can be dropped and called again: no part is lost.
    fn next(&mut self) -> impl Future<Output = Part> + Send;

    /// Shows after a silence that the connection is open.
    fn silence(&mut self) -> impl Future<Output = Bytes> + Send;

    /// The number of its next event, if its events have numbers.
    fn position(&self) -> Option<u64> {
        None
    }

    /// Its time is over.
    fn time_over(&mut self) {}
}

/// How long a search may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    pub(crate) time: Duration,
    /// How a search ends sooner.
    pub(crate) advice: &'static str,
}

impl TimeLimit {
    fn problem(&self) -> Problem {
        let Self { time, advice } = self;
        let detail = format!(
            "the search was not finished after {time:?} and was ended: {advice}, or start `baton up` with a longer \
             --search-timeout"
        );
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "timeout", detail)
    }
}

/// The response that streams a source.
pub(crate) fn respond(
    source: impl Source, form: Form, limit: Option<TimeLimit>, state: &Shared, admission: &Admission,
    place: StreamPermit,
) -> Response<Body> {
    admission.streams(place);
    let streamed = Stream {
        source,
        form,
        state: Arc::clone(state),
        validity: admission.validity(),
        closing: state.closing.subscribe(),
        limit: limit.map(|limit| (limit, Instant::now() + limit.time)),
        silence: FIRST_SILENCE,
        is_greeted: false,
        is_over: false,
    };
    let body = stream::unfold(streamed, |mut streamed| async {
        let bytes = streamed.next().await?;
        Some((Ok::<_, Infallible>(bytes), streamed))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, form.content_type());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Stream<S> {
    source: S,
    form: Form,
    state: Shared,
    /// How long it may be read.
    validity: Option<Validity>,
    closing: watch::Receiver<bool>,
    limit: Option<(TimeLimit, Instant)>,
    /// The silence after which the peer gets a sign.
    silence: Duration,
    is_greeted: bool,
    is_over: bool,
}

/// What comes first.
enum Turn {
    Part(Part),
    Silence,
    Closes,
    Revoked,
    TimeOver(TimeLimit),
}

impl<S: Source> Stream<S> {
    /// The next part of the body, which is never empty; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_greeted, true) {
            let greeting = self.form.greeting();
            if !greeting.is_empty() {
                return Some(greeting);
            }
        }
        while !self.is_over {
            let turn = tokio::select! {
                biased;
                _ = self.closing.wait_for(|closing| *closing) => Turn::Closes,
                () = Validity::ends(&mut self.validity, &self.state) => Turn::Revoked,
                limit = time_over(self.limit) => Turn::TimeOver(limit),
                part = self.source.next() => Turn::Part(part),
                () = sleep(self.silence) => Turn::Silence,
            };
            self.is_over = !matches!(turn, Turn::Part(Part::Further(_)) | Turn::Silence);
            let bytes = match turn {
                Turn::Part(Part::Further(bytes) | Part::Last(bytes)) => bytes,
                Turn::Silence => {
                    self.silence = SILENCE;
                    self.source.silence().await
                }
                Turn::Closes => self.form.farewell(self.source.position()),
                Turn::Revoked => self.form.failure(&Validity::ended().json()),
                Turn::TimeOver(limit) => {
                    self.source.time_over();
                    self.form.failure(&limit.problem().json())
                }
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }
}

async fn time_over(limit: Option<(TimeLimit, Instant)>) -> TimeLimit {
    match limit {
        Some((limit, until)) => {
            sleep_until(until).await;
            limit
        }
        None => std::future::pending().await,
    }
}
