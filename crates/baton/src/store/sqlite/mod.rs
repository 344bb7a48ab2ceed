//! The store in a SQLite file: embedded, durable, shared by the processes of one machine.
//!
//! **Guarantees.** A call is one transaction, or part of one with others that waited beside it; it is answered only
//! after the commit, which for all but beats has reached the disk (`synchronous=FULL`). A process killed at any
//! moment leaves the file as of its last commit. Reads see one snapshot and hold up no writer. Several fleets may
//! live in one file and know nothing of each other. Writers of all processes take turns (see `lock`): none starves,
//! and one stopped inside a transaction makes the others wait, for as long as it takes, without failing them.
//!
//! **Failure.** Nothing is opened before the first call, and an open that failed is tried again by the next. Only the
//! first opening of a process may make a file, and only where nothing is left of a former one (see `absence`); one that
//! is missing is [`StoreError::Unreachable`]: a store that is not up yet. A place where the file is gone but its log is
//! not, a file that is not a store, one on a network file system and one that cannot be written are
//! [`StoreError::Unfit`], and stay as they were. A full disk is [`StoreError::NoRoom`], and keeps room for all that
//! brings no new bodies (see `reserve`); a log that a reader holds until it has its full length is the same (see
//! `held_log`).
//!
//! A file that was open and is gone, or has been replaced, is noticed before the next transaction, by its number, and
//! within half a second by its content. It is let go of, with its log as it is, and waited for: a store that comes back
//! is gone on with; of another one every session is unknown and joins anew. A log that belongs to another file is
//! never used and never deleted (see `log`).
//!
//! **Files.** Beside `x.db` lie SQLite's `x.db-wal` and `x.db-shm` while it is in use; the last process that closes it
//! leaves neither. The locks `x.db-lock`, `x.db-gate` and `x.db-door`, the note `x.db-log`, the folder `x.db-wake` and
//! `x.db-reserve` belong to the store too, and are dispensable while no process runs.

mod absence;
mod backup;
mod building;
mod connection;
mod connection_thread;
mod destination;
mod fault;
mod file;
mod held_log;
mod holder;
mod idle_log;
mod location;
mod lock;
mod log;
mod mark;
mod migration;
mod mounts;
mod note;
mod one_name;
mod open_guard;
mod partly_gone;
mod presence_lock;
mod reader;
mod remains;
mod renewal;
mod reserve;
mod site;
mod stall;
mod sweep;
mod tables;
mod use_period;
mod wake;
mod writer;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use tokio::sync::oneshot;

pub use self::backup::{Backup, RestoreError, Restored};
use self::{
    connection_thread::ConnectionThread,
    file::{OpenFile, Purpose},
    reader::Question,
    site::Site,
    sweep::Sweeper,
    wake::WakeChannel,
    writer::Job,
};
use super::{
    Answer, BoxFuture, Clock, Conversion, Ear, Kind, Request, Standing, Store, StoreError, Waiting, Woken, serve,
};
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
    shared: Arc<SqliteState>,
}

/// How long closing takes at most; a thread that waits for another process is left behind.
const CLOSING: Duration = Duration::from_secs(2);

struct SqliteState {
    site: Arc<Site>,
    channel: Arc<WakeChannel>,
    messages: ConnectionThread<Job>,
    beats: ConnectionThread<Job>,
    reads: ConnectionThread<Question>,
    /// Apart from the reads, because a recount may take long and a look must not.
    looks: ConnectionThread<Question>,
}

impl fmt::Debug for SqliteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.site.path).finish()
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
        let site = Arc::new(Site::new(path, fleet, clock, create));
        let channel = Arc::new(WakeChannel::new(Arc::clone(&site)));
        let writer = |name, purpose| {
            let channel = Arc::clone(&channel);
            // One of the two sees to the room, and not the one that must never be late.
            let sweeper = move || (purpose == Purpose::Messages).then(Sweeper::new);
            ConnectionThread::new(name, &site, purpose, move |inbox| writer::run(&channel, sweeper(), inbox))
        };
        let reader = |name| ConnectionThread::new(name, &site, Purpose::Reads, reader::run);
        let shared = SqliteState {
            messages: writer("baton-write", Purpose::Messages),
            beats: writer("baton-beat", Purpose::Beats),
            reads: reader("baton-read"),
            looks: reader("baton-look"),
            site,
            channel,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl SqliteState {
    /// Hands a request to its thread at once; what is returned only waits for the answer.
    fn hand_in(&self, request: Request) -> Result<oneshot::Receiver<Result<Answer, StoreError>>, StoreError> {
        match &request {
            Request::Join(join) if join.kind == Kind::Node => self.channel.know(join.session),
            Request::Leave(leave) => self.channel.forget(leave.session),
            _ => {}
        }
        let (caller, answer) = oneshot::channel();
        match request {
            Request::Look(_) => self.looks.send(Question { request, answer: caller })?,
            request if request.reads() => self.reads.send(Question { request, answer: caller })?,
            Request::Beat(_) => self.beats.send(Job { request, answer: caller, so_far: None })?,
            request => self.messages.send(Job { request, answer: caller, so_far: None })?,
        }
        Ok(answer)
    }

    /// The answer to what was handed in; a long wait for another process is told.
    async fn answer(&self, mut answer: oneshot::Receiver<Result<Answer, StoreError>>) -> Result<Answer, StoreError> {
        loop {
            match tokio::time::timeout(stall::ORDINARY, &mut answer).await {
                Ok(answer) => return answer.unwrap_or_else(|_| Err(broken_off())),
                Err(_) => self.site.look_for_stall(),
            }
        }
    }

    /// Closes every connection, and with the last of all processes the log; the next call opens them anew.
    fn close(&self) {
        let closing = vec![self.looks.close(), self.reads.close(), self.beats.close(), self.messages.close()];
        connection_thread::await_all(closing, CLOSING);
    }
}

impl Drop for SqliteState {
    /// Waits until the store is let go of, with all that shows others that it is there; not for threads that wait for
    /// another process.
    fn drop(&mut self) {
        let ending = [self.looks.end(), self.reads.end(), self.beats.end(), self.messages.end()];
        if self.site.stalled().is_none() {
            connection_thread::await_all(ending.into_iter().flatten().collect(), CLOSING);
        }
    }
}

/// Carries out what blocks its thread.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(broken_off()))
}

/// The thread ended before it answered: whether the call took effect is not known.
fn broken_off() -> StoreError {
    StoreError::Unreachable("the store's thread broke off: repeat the call".to_owned())
}

impl Store for SqliteStore {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Answer, StoreError>> {
        let handed_in = self.shared.hand_in(request);
        Box::pin(async move { self.shared.answer(handed_in?).await })
    }

    /// Beats have a thread and a connection of their own already.
    fn apart(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    fn hear(&self, ear: Ear) {
        self.shared.site.hear(ear);
    }

    fn in_the_way(&self) -> Option<String> {
        self.shared.site.stalled().map(|stalled| stalled.to_string())
    }

    fn fleets(&self) -> BoxFuture<'_, Result<Option<Vec<Name>>, StoreError>> {
        let site = Arc::clone(&self.shared.site);
        Box::pin(apart(move || remains::fleets(&OpenFile::open(&site, Purpose::Reads)?.db).map(Some)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            // A runtime that ends meanwhile does not wait for it.
            tokio::task::spawn_blocking(move || shared.close()).await.ok();
        })
    }

    fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> BoxFuture<'_, Result<Woken, StoreError>> {
        Box::pin(async move { serve(self, self.shared.channel.wait(session).await, &*waiting).await })
    }

    fn standing(&self) -> BoxFuture<'_, Result<Standing, StoreError>> {
        let site = Arc::clone(&self.shared.site);
        Box::pin(apart(move || migration::standing(&site)))
    }

    fn convert(&self, since: Standing) -> BoxFuture<'_, Result<Conversion, StoreError>> {
        let site = Arc::clone(&self.shared.site);
        Box::pin(apart(move || migration::convert(&site, &since)))
    }
}
