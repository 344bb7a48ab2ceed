//! The admission of a request: its token, and the place that it holds to the last byte of its answer.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
};
use http_body::{Frame, SizeHint};

use crate::{
    gate::judge,
    problem::Problem,
    room::{BytesPermit, RequestPermit, Room, StreamPermit},
    shares::Peer,
    stall::Asked,
    state::State,
    tokens::{Access, Right},
};

/// The place that a response holds until its last byte is sent, or it is dropped.
pub(crate) enum Holding {
    Nothing,
    Request(#[expect(dead_code, reason = "it is held")] RequestPermit),
    Stream(#[expect(dead_code, reason = "it is held")] StreamPermit),
}

/// The admission of a request. One that takes long becomes a stream, and leaves its place to others.
#[derive(Clone)]
pub(crate) struct Admission {
    peer: Peer,
    validity: Option<Validity>,
    holding: Arc<Mutex<Holding>>,
}

impl Admission {
    /// For a request that was judged; without a validity if it needs no token.
    pub(crate) fn new(peer: Peer, validity: Option<Validity>, holding: Holding) -> Self {
        Self { peer, validity, holding: Arc::new(Mutex::new(holding)) }
    }

    /// The right to hold bytes of its body.
    pub(crate) fn bytes(&self, room: &Room) -> BytesPermit {
        room.bytes(self.peer.clone())
    }

    /// The right of the peer.
    pub(crate) fn right(&self) -> Right {
        self.validity.as_ref().map_or(Right::Read, |it| it.right)
    }

    /// Until when the request may go on.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.validity.clone()
    }

    /// Returns once the request may not go on, if it is the gate that has to end it. A stream ends itself: it has
    /// something to say at its end.
    pub(crate) async fn is_void(&self, state: &State) {
        let mut validity = self.validity();
        Validity::ends(&mut validity, state).await;
        if matches!(*self.holding(), Holding::Stream(_)) {
            std::future::pending().await
        }
    }

    /// Leaves the place of a request to others. From now on the request has to end itself when its [`Validity`] ends.
    pub(crate) fn becomes_stream(&self, room: &Room) -> Result<(), Problem> {
        self.streams(room.stream()?);
        Ok(())
    }

    /// The same with a place that was taken before.
    pub(crate) fn streams(&self, place: StreamPermit) {
        self.replace(Holding::Stream(place));
    }

    /// The place, for its response.
    pub(crate) fn into_holding(self) -> Holding {
        self.replace(Holding::Nothing)
    }

    fn replace(&self, holding: Holding) -> Holding {
        std::mem::replace(&mut *self.holding(), holding)
    }

    fn holding(&self) -> MutexGuard<'_, Holding> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a request may go on: until its token is revoked, or a token is needed and it has none.
#[derive(Debug, Clone)]
pub(crate) struct Validity {
    bearer: Option<Arc<str>>,
    right: Right,
    /// The version of the tokens for which this was judged.
    version: u64,
}

impl Validity {
    /// For a request that was judged with the tokens of this version.
    pub(crate) const fn new(bearer: Option<Arc<str>>, right: Right, version: u64) -> Self {
        Self { bearer, right, version }
    }

    /// Returns when it has ended. Nothing is judged as long as no token changes.
    ///
    /// # Cancel safety
    /// It can be dropped and called again.
    pub(crate) async fn ends(validity: &mut Option<Self>, state: &State) {
        let Some(validity) = validity else { return std::future::pending().await };
        let mut changes = state.keeper.changes();
        loop {
            let changed = changes.wait_for(|version| *version != validity.version).await.map(|version| *version);
            // Without an answer there is no keeper any more, and the gateway has ended.
            let Ok(version) = changed else { return };
            validity.version = version;
            match judge(state, validity.bearer.as_deref()) {
                Access::Open => {}
                Access::Granted(right) if right >= validity.right => {}
                _ => return,
            }
        }
    }

    /// The problem at that end.
    pub(crate) fn ended() -> Problem {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "token", "the token is not valid any more");
        let challenge = HeaderValue::from_static("Bearer realm=\"baton\", error=\"invalid_token\"");
        problem.header(header::WWW_AUTHENTICATE, challenge)
    }
}

/// A body that holds a permit.
pub(crate) struct Held {
    body: Body,
    _holding: Holding,
    _asked: Option<Asked>,
}

impl Held {
    pub(crate) const fn new(body: Body, holding: Holding) -> Self {
        Self { body, _holding: holding, _asked: None }
    }

    /// The body that answers this request.
    pub(crate) fn to(self, asked: Asked) -> Self {
        Self { _asked: Some(asked), ..self }
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>, context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
