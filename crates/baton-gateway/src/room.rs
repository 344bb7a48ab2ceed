//! How much there may be at once. What finds no room is refused at once.
//!
//! A permit lives as long as the response it was taken for, to the last byte of its body: a peer that takes its time counts.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{limits::Limits, pace::Pace, problem::Problem, stall::Asked, tokens::Right};

/// Bytes are counted in units of this many.
const UNIT: usize = 1 << 10;

/// The room of a gateway.
#[derive(Debug)]
pub(crate) struct Room {
    requests: Arc<Semaphore>,
    most_requests: usize,
    streams: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    pace: Arc<Pace>,
    stream_pace: Arc<Pace>,
}

/// The right to answer one request.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
    pace: Arc<Pace>,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.pace.ended();
    }
}

/// The right to stream one response, or to wait long for one.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _permit: OwnedSemaphorePermit,
    pace: Arc<Pace>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.pace.ended();
    }
}

/// The right to hold bytes of a body.
#[derive(Debug)]
pub(crate) struct BytesPermit {
    held: Option<OwnedSemaphorePermit>,
    units: usize,
}

impl Room {
    pub(crate) fn new(limits: &Limits, connections: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.requests)),
            most_requests: limits.requests,
            // Some connections are left for everything else.
            streams: Arc::new(Semaphore::new(connections.saturating_sub(connections / 16).max(1))),
            searches: Arc::new(Semaphore::new(limits.searches)),
            bytes: Arc::new(Semaphore::new((limits.body_bytes / UNIT).min(Semaphore::MAX_PERMITS))),
            pace: Arc::default(),
            stream_pace: Arc::default(),
        }
    }

    pub(crate) fn request(&self) -> Result<RequestPermit, Problem> {
        match Arc::clone(&self.requests).try_acquire_owned() {
            Ok(permit) => Ok(RequestPermit { _permit: permit, pace: Arc::clone(&self.pace) }),
            Err(_) => {
                let seconds = self.pace.seconds_for(self.most_requests);
                Err(Problem::busy("busy", "as many requests are being answered as may be; try again later", seconds))
            }
        }
    }

    pub(crate) fn stream(&self) -> Result<StreamPermit, Problem> {
        match Arc::clone(&self.streams).try_acquire_owned() {
            Ok(permit) => Ok(StreamPermit { _permit: permit, pace: Arc::clone(&self.stream_pace) }),
            Err(_) => {
                let seconds = self.stream_pace.seconds_for(1);
                Err(Problem::busy("too-many-streams", "there are as many streams as may be; try again later", seconds))
            }
        }
    }

    /// For a search in the threads of the gateway.
    pub(crate) fn search(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.searches).try_acquire_owned().map_err(|_| {
            let detail = "as many searches run in the gateway itself as may; take mode=process, or try again later";
            Problem::busy("busy", detail, self.stream_pace.seconds_for(1))
        })
    }

    /// For a body of which nothing is there yet.
    pub(crate) const fn bytes(&self) -> BytesPermit {
        BytesPermit { held: None, units: 0 }
    }

    /// Makes the permit one for at least so many bytes.
    pub(crate) fn grow(&self, permit: &mut BytesPermit, bytes: usize) -> Result<(), Problem> {
        let units = bytes.div_ceil(UNIT);
        let Some(more) = units.checked_sub(permit.units).filter(|more| *more > 0) else { return Ok(()) };
        let further =
            u32::try_from(more).ok().and_then(|more| Arc::clone(&self.bytes).try_acquire_many_owned(more).ok());
        let Some(further) = further else {
            let seconds = self.pace.seconds_for(1);
            return Err(Problem::busy("busy", "as many bytes are coming in as may be; try again later", seconds));
        };
        match &mut permit.held {
            Some(held) => held.merge(further),
            None => permit.held = Some(further),
        }
        permit.units = units;
        Ok(())
    }
}

/// What a response holds until its last byte is sent, or it is dropped.
pub(crate) enum Holding {
    Nothing,
    Request(#[expect(dead_code, reason = "it is held")] RequestPermit),
    Stream(#[expect(dead_code, reason = "it is held")] StreamPermit),
}

/// What a request was admitted with. One that turns out to take long becomes a stream, and leaves its place to others.
#[derive(Clone)]
pub(crate) struct Admission {
    right: Right,
    bearer: Option<Arc<str>>,
    holding: Arc<Mutex<Holding>>,
}

impl Admission {
    pub(crate) fn new(right: Right, bearer: Option<Arc<str>>, holding: Holding) -> Self {
        Self { right, bearer, holding: Arc::new(Mutex::new(holding)) }
    }

    /// What whoever asks may do.
    pub(crate) const fn right(&self) -> Right {
        self.right
    }

    /// The token it was admitted by.
    pub(crate) fn bearer(&self) -> Option<Arc<str>> {
        self.bearer.clone()
    }

    pub(crate) fn becomes_stream(&self, room: &Room) -> Result<(), Problem> {
        self.replace(Holding::Stream(room.stream()?));
        Ok(())
    }

    /// What it holds, for its response.
    pub(crate) fn into_holding(self) -> Holding {
        self.replace(Holding::Nothing)
    }

    fn replace(&self, holding: Holding) -> Holding {
        std::mem::replace(&mut *self.holding.lock().unwrap_or_else(PoisonError::into_inner), holding)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_refused_and_what_goes_leaves_some() {
        let room = Room::new(&Limits { requests: 1, body_bytes: 4 << 10, ..Limits::default() }, 1);
        let held = Held::new(Body::from("x"), Holding::Request(room.request().unwrap()));
        assert_eq!(room.request().unwrap_err().status().as_u16(), 503);
        drop(held);
        room.request().unwrap();
        let stream = room.stream().unwrap();
        assert!(room.stream().is_err());
        drop(Held::new(Body::empty(), Holding::Stream(stream)));
        room.stream().unwrap();
        let (mut one, mut other) = (room.bytes(), room.bytes());
        room.grow(&mut one, 1).unwrap();
        room.grow(&mut one, 3 << 10).unwrap();
        room.grow(&mut other, 1024).unwrap();
        assert!(room.grow(&mut other, 1025).is_err());
        drop(one);
        room.grow(&mut other, 4 << 10).unwrap();
    }
}
