//! What only the SQLite store does: its file, its groups, its wake-ups; and that it agrees with the model in memory.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

mod agreement;
mod backups;
mod files;
mod held_log;
mod logs;
mod rights;
mod room;
mod sharing;
mod space;
mod unreaped;

use std::path::Path;

use baton::{
    Name, SessionId,
    store::{
        Clock, Join, Kind, SqliteOptions, SqliteStore, Submit,
        message::{Body, Parcel, ParcelBuilder, Submission},
    },
};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn open(path: &Path, fleet: &str, create: bool) -> SqliteStore {
    SqliteStore::open(path, name(fleet), SqliteOptions { clock: Clock::system(), create }).unwrap()
}

pub(crate) fn join(session: SessionId) -> Join {
    Join {
        session,
        kind: Kind::Client,
        host: "here".to_owned(),
        pid: 7,
        queues: Vec::new(),
        lease_ms: 60_000,
        heartbeat_ms: 1_000,
        offers: Vec::new(),
        former: None,
    }
}

pub(crate) fn parcel(bodies: &[&[u8]]) -> Parcel {
    let mut builder = ParcelBuilder::default();
    bodies.iter().for_each(|body| builder.add(Body::new(body).unwrap()).unwrap());
    builder.finish().unwrap()
}

pub(crate) fn submit(session: SessionId, submit_no: u64, queue: &str) -> Submit {
    let submissions = vec![Submission { queue: name(queue), parcel: parcel(&[b"1", b"22"]), key: None, call: None }];
    Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes: 1 << 30, max_keys: 100 }
}
