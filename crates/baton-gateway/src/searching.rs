//! A subset sum that is searched in the thread of its connection, as the body of a response.
//!
//! It computes for a slice of time, and then all else on the thread has its turn. It searches as fast as its reader reads, and
//! ends with its reader. No store is asked: it goes on while the store is away, and cannot be gone on with after a cut.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use baton::builtin::subset_sum::Interleaved;
use futures_util::stream;
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    admission::{Admission, Validity},
    forms::Form,
    room::StreamPermit,
    state::Shared,
    stream::{BREATH, out_of_time},
};

/// See the module.
pub(crate) struct Searching {
    search: Interleaved,
    form: Form,
    state: Shared,
    /// How long it may be read.
    validity: Option<Validity>,
    closing: watch::Receiver<bool>,
    until: Instant,
    greeted: bool,
    over: bool,
    _turn: OwnedSemaphorePermit,
}

/// What comes first.
enum Turn {
    Found(Option<Vec<Vec<i64>>>),
    Silence,
    Closes,
    Revoked,
    TimeOver,
}

impl Searching {
    /// The response that gives what is found.
    pub(crate) fn respond(
        search: Interleaved, turn: OwnedSemaphorePermit, form: Form, state: &Shared, admission: &Admission,
        place: StreamPermit,
    ) -> Response<Body> {
        admission.streams(place);
        let searching = Self {
            search,
            form,
            state: Arc::clone(state),
            validity: admission.validity(),
            closing: state.closing.subscribe(),
            until: Instant::now() + state.limits.search_time,
            greeted: false,
            over: false,
            _turn: turn,
        };
        let body = stream::unfold(searching, |mut searching| async {
            let bytes = searching.next().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), searching))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, form.content_type());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

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
                () = sleep_until(self.until) => Turn::TimeOver,
                found = self.search.next() => Turn::Found(found),
                () = sleep(BREATH) => Turn::Silence,
            };
            self.over = !matches!(turn, Turn::Found(Some(_)) | Turn::Silence);
            let bytes = match turn {
                Turn::Closes => self.form.farewell(None),
                Turn::Revoked => self.form.failure(&Validity::ended().json()),
                Turn::TimeOver => self.form.failure(&out_of_time(self.state.limits.search_time).json()),
                Turn::Silence => self.form.breath(),
                Turn::Found(Some(matches)) => {
                    let matches = matches.iter().map(|it| serde_json::to_vec(it).unwrap_or_default());
                    matches.flat_map(|json| self.form.unnumbered("match", &json)).collect()
                }
                Turn::Found(None) => {
                    let summary = serde_json::to_vec(&self.search.summary()).unwrap_or_default();
                    self.form.unnumbered("end", &summary)
                }
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }
}
