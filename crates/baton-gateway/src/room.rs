//! How much there may be at once. What finds no room is refused at once.
//!
//! A permit lives as long as the response it was taken for, to the last byte of its body: a peer that takes its time
//! counts. Bytes count from when they came in until they are handed in to the store. A length that was only declared
//! does not count.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    limits::Limits,
    pace::Pace,
    problem::Problem,
    shares::{Peer, Share, Shares},
};

/// Searches whose cost is estimated at once.
const ESTIMATES: usize = 2;

/// The room of a gateway.
#[derive(Debug)]
pub(crate) struct Room {
    requests: Arc<Shares>,
    streams: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    estimates: Arc<Semaphore>,
    bytes: Arc<Shares>,
    pace: Arc<Pace>,
    stream_pace: Arc<Pace>,
}

/// The right to answer one request.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _share: Share,
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
    share: Share,
    pace: Arc<Pace>,
}

impl BytesPermit {
    /// Changes the number of bytes. Fewer than before are always allowed.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.share.hold(bytes) {
            return Ok(());
        }
        let seconds = self.pace.seconds_for(1);
        Err(Problem::busy("busy", "too many bytes of requests are arriving; try again later", seconds))
    }
}

impl Room {
    pub(crate) fn new(limits: &Limits, connections: usize) -> Self {
        Self {
            requests: Shares::new(limits.requests),
            // Some connections are left for everything else.
            streams: Arc::new(Semaphore::new(connections.saturating_sub(connections / 16).max(1))),
            searches: Arc::new(Semaphore::new(limits.searches)),
            estimates: Arc::new(Semaphore::new(ESTIMATES)),
            bytes: Shares::new(limits.body_bytes),
            pace: Arc::default(),
            stream_pace: Arc::default(),
        }
    }

    pub(crate) fn request(&self, peer: Peer) -> Result<RequestPermit, Problem> {
        let mut share = self.requests.share(peer);
        if share.hold(1) {
            return Ok(RequestPermit { _share: share, pace: Arc::clone(&self.pace) });
        }
        let seconds = self.pace.seconds_for(1);
        Err(Problem::busy("busy", "too many requests are under way; try again later", seconds))
    }

    pub(crate) fn stream(&self) -> Result<StreamPermit, Problem> {
        match Arc::clone(&self.streams).try_acquire_owned() {
            Ok(permit) => Ok(StreamPermit { _permit: permit, pace: Arc::clone(&self.stream_pace) }),
            Err(_) => {
                let seconds = self.stream_pace.seconds_for(1);
                Err(Problem::busy("too-many-streams", "too many streams are open; try again later", seconds))
            }
        }
    }

    /// For a search in the threads of the gateway.
    pub(crate) fn search(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.searches).try_acquire_owned().map_err(|_| {
            let detail = "too many searches run in the gateway itself; take mode=process, or try again later";
            Problem::busy("busy", detail, self.stream_pace.seconds_for(1))
        })
    }

    /// For an estimate of what a search costs; nothing if no turn comes in time.
    pub(crate) async fn estimate(&self, until: Instant) -> Option<OwnedSemaphorePermit> {
        timeout_at(until, Arc::clone(&self.estimates).acquire_owned()).await.ok()?.ok()
    }

    /// For a body of which nothing is there yet.
    pub(crate) fn bytes(&self, peer: Peer) -> BytesPermit {
        BytesPermit { share: self.bytes.share(peer), pace: Arc::clone(&self.pace) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::body::Body;

    use super::*;
    use crate::admission::{Held, Holding};

    #[test]
    fn what_finds_no_room_is_refused_and_what_goes_leaves_some() {
        let room = Room::new(&Limits { requests: 2, body_bytes: 4 << 10, ..Limits::default() }, 1);
        let peer = || Peer::at(IpAddr::from([10, 0, 0, 1]));
        let held = Held::new(Body::from("x"), Holding::Request(room.request(peer()).unwrap()));
        assert_eq!(room.request(peer()).unwrap_err().status().as_u16(), 503);
        drop(held);
        room.request(peer()).unwrap();
        let stream = room.stream().unwrap();
        assert!(room.stream().is_err());
        drop(Held::new(Body::empty(), Holding::Stream(stream)));
        room.stream().unwrap();
        let (mut one, mut other) = (room.bytes(peer()), room.bytes(peer()));
        one.hold(1).unwrap();
        one.hold(2 << 10).unwrap();
        assert!(other.hold(1).is_err());
        one.hold(1 << 10).unwrap();
        other.hold(1 << 10).unwrap();
        drop(one);
        other.hold(2 << 10).unwrap();
    }
}
