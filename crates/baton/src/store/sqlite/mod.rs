//! The store in a SQLite file: embedded, durable, shared by the processes of one machine.
//!
//! **Guarantees.** A call is one transaction, or part of one with others that waited beside it; it is answered only
//! after the commit, which for all but beats has reached the disk (`synchronous=FULL`). A process killed at any
//! moment leaves the file as of its last commit. Reads see one snapshot and hold up no writer. Several fleets may
//! live in one file and know nothing of each other. Writers of all processes take turns (see `lock`): none starves,
//! and one stopped inside a transaction makes the others wait, for as long as it takes, without failing them.
//!
//! **Failure.** Nothing is opened before the first call, and an open that failed is tried again by the next.
//! A missing file that may not be created is [`StoreError::Unreachable`]: a store that is not up yet. A file that is
//! not a store, one on a network file system and one that cannot be written are [`StoreError::Unfit`], and stay as
//! they were. A full disk is [`StoreError::NoRoom`]. A file removed or replaced under a running fleet is noticed
//! before the next transaction: every session is then unknown and joins anew.
//!
//! **Files.** Beside `x.db` lie SQLite's `x.db-wal` and `x.db-shm`, the locks `x.db-lock` and `x.db-gate`, and the
//! folder `x.db-wake`. All belong to the store; while no process runs, all but the first two are dispensable.

mod fault;
mod file;
mod lane;
mod lift;
mod lock;
mod mounts;
mod reader;
mod tables;
mod wake;
mod writer;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::oneshot;

use self::{file::Purpose, lane::Lane, reader::Question, wake::Bell, writer::Job};
use super::{Answer, Claim, Clock, Kind, Reply, Request, Store, StoreError, Woken, ask};
use crate::message::{Name, SessionId};

/// How a [`SqliteStore`] is opened.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Where store time comes from.
    pub clock: Clock,
    /// Whether a missing file, and its folder, are made; commands that only look leave this off.
    pub create: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { clock: Clock::system(), create: true }
    }
}

/// A store in a SQLite file. Clones share their threads and connections.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

/// Where a store is and whose.
#[derive(Debug)]
struct Site {
    path: PathBuf,
    fleet: Name,
    clock: Clock,
    create: bool,
}

struct Shared {
    site: Arc<Site>,
    bell: Arc<Bell>,
    messages: Lane<Job>,
    beats: Lane<Job>,
    reads: Lane<Question>,
    /// Apart from the reads, because a recount may take long and a look must not.
    looks: Lane<Question>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.site.fmt(f)
    }
}

impl SqliteStore {
    /// The store of `fleet` in the file at `path`. Nothing is read or made yet: the first call does that, and its
    /// error says what is wrong.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] for a path that names no file.
    pub fn open(path: &Path, fleet: Name, options: SqliteOptions) -> Result<Self, StoreError> {
        let SqliteOptions { clock, create } = options;
        let absolute = std::path::absolute(path).ok().filter(|path| path.file_name().is_some());
        let Some(path) = absolute else {
            return Err(StoreError::Unfit(format!("{:?} names no file: give the path of the store", path.display())));
        };
        let site = Arc::new(Site { path, fleet, clock, create });
        let bell = Arc::new(Bell::new(Arc::clone(&site)));
        let writer = |name, purpose| {
            let (site, bell) = (Arc::clone(&site), Arc::clone(&bell));
            Lane::new(name, move |jobs| writer::run(&site, purpose, &bell, jobs))
        };
        let reader = |name| {
            let site = Arc::clone(&site);
            Lane::new(name, move |questions| reader::run(&site, questions))
        };
        let shared = Shared {
            messages: writer("baton-write", Purpose::Messages),
            beats: writer("baton-beat", Purpose::Beats),
            reads: reader("baton-read"),
            looks: reader("baton-look"),
            site,
            bell,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Shared {
    /// Hands a request to its thread at once; what is returned only waits for the answer.
    fn hand_in(&self, request: Request) -> Result<oneshot::Receiver<Result<Answer, StoreError>>, StoreError> {
        match &request {
            Request::Join(join) if join.kind == Kind::Node => self.bell.know(join.session),
            Request::Leave(leave) => self.bell.forget(leave.session),
            _ => {}
        }
        let (caller, answer) = oneshot::channel();
        match request {
            Request::Look(_) => self.looks.send(Question { request, answer: caller })?,
            request if reader::is_read(&request) => self.reads.send(Question { request, answer: caller })?,
            Request::Beat(_) => self.beats.send(Job { request, answer: caller })?,
            request => self.messages.send(Job { request, answer: caller })?,
        }
        Ok(answer)
    }
}

/// The thread ended before it answered: whether the call took effect is not known.
fn broken_off() -> StoreError {
    StoreError::Unreachable("the store's thread broke off: repeat the call".to_owned())
}

impl Store for SqliteStore {
    fn call(&self, request: Request) -> Reply<'_, Result<Answer, StoreError>> {
        let handed_in = self.shared.hand_in(request);
        Box::pin(async move { handed_in?.await.unwrap_or_else(|_| Err(broken_off())) })
    }

    /// Beats have a thread and a connection of their own already.
    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn wait(&self, session: SessionId, claim: Option<Claim>) -> Reply<'_, Result<Woken, StoreError>> {
        Box::pin(async move {
            let queues = self.shared.bell.wait(session).await;
            let claimed = match claim {
                Some(claim) => Some(ask(self, claim).await),
                None => None,
            };
            Ok(Woken { queues, claimed })
        })
    }

    fn poke(&self, session: SessionId) -> Reply<'_, Result<(), StoreError>> {
        self.shared.bell.poke(session);
        Box::pin(std::future::ready(Ok(())))
    }
}
