//! A thread with its own connection, started at the first call and started anew if it ever died.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use super::{
    Site,
    file::{OpenFile, Purpose},
};
use crate::store::StoreError;

type Work<J> = Arc<dyn Fn(&mpsc::Receiver<J>) + Send + Sync>;

/// The way to a thread that works off jobs in order.
pub(super) struct Lane<J> {
    name: &'static str,
    jobs: Mutex<Option<mpsc::Sender<J>>>,
    work: Work<J>,
}

impl<J: Send + 'static> Lane<J> {
    /// A lane whose thread runs `work` until the lane is dropped and all jobs are done.
    pub(super) fn new(name: &'static str, work: impl Fn(&mpsc::Receiver<J>) + Send + Sync + 'static) -> Self {
        Self { name, jobs: Mutex::new(None), work: Arc::new(work) }
    }

    /// Hands in a job.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] if the system gives no thread.
    pub(super) fn send(&self, mut job: J) -> Result<(), StoreError> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = jobs.as_ref() {
            match running.send(job) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(unsent)) => job = unsent,
            }
        }
        let (sender, receiver) = mpsc::channel();
        let work = Arc::clone(&self.work);
        let thread = thread::Builder::new().name(self.name.to_owned()).spawn(move || work(&receiver));
        let unreachable = |why| StoreError::Unreachable(format!("the store's thread did not start: {why}"));
        thread.map_err(|error| unreachable(error.to_string()))?;
        sender.send(job).map_err(|_| unreachable("it ended at once".to_owned()))?;
        *jobs = Some(sender);
        Ok(())
    }
}

/// The thread's side: the file, opened when it is needed and again when it is another one.
pub(super) struct Desk {
    site: Arc<Site>,
    purpose: Purpose,
    file: Option<OpenFile>,
}

impl Desk {
    pub(super) const fn new(site: Arc<Site>, purpose: Purpose) -> Self {
        Self { site, purpose, file: None }
    }

    /// Where the store is and whose.
    pub(super) const fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The file, open.
    ///
    /// # Errors
    /// As [`OpenFile::open`]; the next call tries again.
    pub(super) fn file(&mut self) -> Result<&OpenFile, StoreError> {
        let current = self.file.take().filter(OpenFile::is_current);
        let file = match current {
            Some(file) => file,
            None => OpenFile::open(&self.site.path, self.site.create, self.purpose)?,
        };
        Ok(self.file.insert(file))
    }

    /// Closes the file; the next call opens it anew.
    pub(super) fn close(&mut self) {
        self.file = None;
    }
}
