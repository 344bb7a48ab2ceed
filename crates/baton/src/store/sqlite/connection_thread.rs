//! A thread with its own connection, started at the first call and started anew if it ever died.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use super::{
    Site,
    file::{self, OpenFile, Purpose, WATCH},
};
use crate::store::StoreError;

type Work<J> = Arc<dyn Fn(&mut Inbox<J>) + Send + Sync>;

/// The way to a thread that works off jobs in order.
pub(super) struct ConnectionThread<J> {
    name: &'static str,
    site: Arc<Site>,
    purpose: Purpose,
    running: Mutex<Option<Running<J>>>,
    work: Work<J>,
}

struct Running<J> {
    orders: mpsc::Sender<Order<J>>,
    /// Is cut off when the thread has ended: its connection is closed, and it holds no more of the store. A store that
    /// was dropped is then gone, with all that shows others that it is there.
    ended: mpsc::Receiver<()>,
}

enum Order<J> {
    Job(J),
    /// Close the connection; dropping what is inside says that it is closed.
    Close(mpsc::Sender<()>),
}

impl<J: Send + 'static> ConnectionThread<J> {
    /// A thread that runs `work` until this is dropped and all jobs are done.
    pub(super) fn new(
        name: &'static str, site: &Arc<Site>, purpose: Purpose, work: impl Fn(&mut Inbox<J>) + Send + Sync + 'static,
    ) -> Self {
        Self { name, site: Arc::clone(site), purpose, running: Mutex::new(None), work: Arc::new(work) }
    }

    /// Hands in a job.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if the system gives no thread.
    pub(super) fn send(&self, job: J) -> Result<(), StoreError> {
        let mut running = self.running();
        let mut order = Order::Job(job);
        if let Some(running) = running.as_ref() {
            match running.orders.send(order) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(unsent)) => order = unsent,
            }
        }
        let (orders, inbox) = mpsc::channel();
        let (alive, ended) = mpsc::channel();
        let work = Arc::clone(&self.work);
        let mut inbox =
            Inbox { orders: inbox, next: None, current: CurrentFile::new(Arc::clone(&self.site), self.purpose) };
        let thread = thread::Builder::new().name(self.name.to_owned()).spawn(move || {
            work(&mut inbox);
            drop((inbox, work));
            drop(alive);
        });
        let unreachable = |why| StoreError::Unreachable(format!("the store's thread did not start: {why}"));
        thread.map_err(|error| unreachable(error.to_string()))?;
        orders.send(order).map_err(|_| unreachable("it ended at once".to_owned()))?;
        *running = Some(Running { orders, ended });
        Ok(())
    }

    /// Has the connection closed, after all jobs handed in before; what is returned is cut off when that is done.
    pub(super) fn close(&self) -> mpsc::Receiver<()> {
        let (closed, told) = mpsc::channel();
        if let Some(running) = self.running().as_ref() {
            // A thread that has ended has closed its connection.
            running.orders.send(Order::Close(closed)).ok();
        }
        told
    }
}

impl<J> ConnectionThread<J> {
    /// Has the thread end after all jobs handed in before; what is returned is cut off when it has.
    pub(super) fn end(&self) -> Option<mpsc::Receiver<()>> {
        self.running().take().map(|running| running.ended)
    }

    fn running(&self) -> MutexGuard<'_, Option<Running<J>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's side: its jobs, and the file to work on.
pub(super) struct Inbox<J> {
    orders: mpsc::Receiver<Order<J>>,
    /// What came after the jobs that were taken together.
    next: Option<Order<J>>,
    pub(super) current: CurrentFile,
}

/// What comes next for the thread.
pub(super) enum Next<J> {
    Job(J),
    /// The moment it asked for has come, or the file was closed.
    Due,
    /// All senders are gone.
    Over,
}

impl<J> Inbox<J> {
    /// The next job, or that a moment has come. While it waits, a file that is no longer the store's is let go; without a
    /// file only a job ends the wait.
    pub(super) fn next(&mut self, due: Option<Instant>) -> Next<J> {
        loop {
            let order = match self.next.take() {
                Some(order) => order,
                None if self.current.file.is_none() => match self.orders.recv() {
                    Ok(order) => order,
                    Err(_) => return Next::Over,
                },
                None => {
                    let left = due.map(|due| due.saturating_duration_since(Instant::now()));
                    let patience = left.map_or(WATCH, |left| left.min(WATCH));
                    match self.orders.recv_timeout(patience) {
                        Ok(order) => order,
                        Err(mpsc::RecvTimeoutError::Timeout) => {
                            self.current.watch();
                            if left == Some(patience) {
                                return Next::Due;
                            }
                            continue;
                        }
                        Err(mpsc::RecvTimeoutError::Disconnected) => return Next::Over,
                    }
                }
            };
            match order {
                Order::Job(job) => return Next::Job(job),
                Order::Close(closed) => {
                    self.current.close();
                    drop(closed);
                    if due.is_some() {
                        return Next::Due;
                    }
                }
            }
        }
    }

    /// A further job, if one waits already.
    pub(super) fn more(&mut self) -> Option<J> {
        match self.orders.try_recv().ok()? {
            Order::Job(job) => Some(job),
            close @ Order::Close(_) => {
                self.next = Some(close);
                None
            }
        }
    }
}

/// The file, opened when it is needed and again when it is another one.
pub(super) struct CurrentFile {
    site: Arc<Site>,
    purpose: Purpose,
    file: Option<OpenFile>,
}

impl CurrentFile {
    const fn new(site: Arc<Site>, purpose: Purpose) -> Self {
        Self { site, purpose, file: None }
    }

    /// Whether it is open now.
    pub(super) const fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Where the store is and whose.
    pub(super) const fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The file, open.
    ///
    /// # Errors
    /// As [`OpenFile::open`]; the next call tries again. A process that has had the store open waits for it, whatever
    /// is in its place meanwhile: it may be in the middle of being brought back. So does one that comes while others have
    /// it open: what looks broken may be half of what they are writing, or of a copy.
    pub(super) fn file(&mut self) -> Result<&OpenFile, StoreError> {
        self.watch();
        let file = match self.file.take() {
            Some(file) => file,
            None => OpenFile::open(&self.site, self.purpose).map_err(|error| match error {
                StoreError::Unfit(why) if self.site.was_open() => not_now(&why),
                StoreError::Damaged(why) if self.site.was_open() || file::is_open_elsewhere(&self.site.path) => {
                    not_now(&why)
                }
                error => error,
            })?,
        };
        Ok(self.file.insert(file))
    }

    /// Lets go of a file that is no longer the store's.
    pub(super) fn watch(&mut self) {
        if let Some(file) = self.file.take_if(|file| !file.is_current()) {
            file.rescue();
        }
    }

    /// What an error means: of a file that was replaced while it was open, its pages say nothing.
    pub(super) fn explain(&mut self, error: StoreError) -> StoreError {
        let doubtful = matches!(error, StoreError::Damaged(_) | StoreError::Unfit(_) | StoreError::Unreachable(_));
        match self.file.take_if(|file| doubtful && !file.is_unchanged()) {
            Some(file) => {
                file.rescue();
                let path = file.path().display();
                StoreError::Unreachable(format!("{path} was replaced while it was open: waiting for what comes"))
            }
            None => error,
        }
    }

    /// Closes the file; the next call opens it anew.
    pub(super) fn close(&mut self) {
        self.file = None;
    }
}

/// What is in the store's place may not stay there.
fn not_now(why: &str) -> StoreError {
    StoreError::Unreachable(format!("what is now at the store's path cannot be used: {why}"))
}

/// Waits until all of these are cut off, or until `limit` is over.
pub(super) fn await_all(closing: Vec<mpsc::Receiver<()>>, limit: Duration) {
    let deadline = Instant::now() + limit;
    for closed in closing {
        // Both ends of the wait are what was waited for.
        closed.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    }
}
