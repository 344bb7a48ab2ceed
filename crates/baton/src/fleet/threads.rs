//! Threads for functions that may block: as many as are at work at once, and kept for a while.
//!
//! They are the node's own. Those of the runtime are shared by the whole program and bounded, so that enough functions
//! that block would keep others, and files, waiting that have nothing to do with them.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

/// How long a thread without work is kept.
const KEPT: Duration = Duration::from_secs(10);

/// What a thread is given to do; it must not panic.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The threads that have nothing to do, by number.
#[derive(Default)]
pub(super) struct Threads(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    threads: Vec<(u64, mpsc::Sender<Job>)>,
    started: u64,
}

impl Threads {
    /// Runs the job on a thread that is idle, or on a new one.
    ///
    /// # Errors
    /// The job, if the system gives no thread.
    pub(super) fn run(self: &Arc<Self>, mut job: Job) -> Result<(), (Job, io::Error)> {
        let number = {
            let mut idle = self.idle();
            while let Some((_, thread)) = idle.threads.pop() {
                match thread.send(job) {
                    Ok(()) => return Ok(()),
                    Err(mpsc::SendError(unsent)) => job = unsent,
                }
            }
            idle.started += 1;
            idle.started
        };
        let (sender, jobs) = mpsc::channel();
        let (threads, own) = (Arc::clone(self), sender.clone());
        let thread = thread::Builder::new().name("baton-blocking".to_owned());
        // Handed over after the start: a thread that was not given takes no job with it.
        match thread.spawn(move || threads.work(number, &own, &jobs)) {
            Ok(_) => sender.send(job).map_err(|mpsc::SendError(job)| (job, io::Error::other("the thread has ended"))),
            Err(error) => Err((job, error)),
        }
    }

    /// What a thread does: its job, then others until none comes for a while.
    fn work(&self, number: u64, own: &mpsc::Sender<Job>, jobs: &mpsc::Receiver<Job>) {
        while let Ok(job) = jobs.recv_timeout(KEPT).or_else(|_| self.leave(number, jobs)) {
            job();
            self.idle().threads.push((number, own.clone()));
        }
    }

    /// Leaves the idle ones; a job, if one is on its way to this thread.
    fn leave(&self, number: u64, jobs: &mpsc::Receiver<Job>) -> Result<Job, mpsc::RecvError> {
        let mut idle = self.idle();
        let was_idle =
            idle.threads.iter().position(|(idle, _)| *idle == number).map(|at| idle.threads.remove(at)).is_some();
        drop(idle);
        if was_idle { Err(mpsc::RecvError) } else { jobs.recv() }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_threads_as_jobs_at_once_and_no_more() {
        let threads = Arc::<Threads>::default();
        let (told, heard) = mpsc::channel();
        for at_once in [1, 600, 600, 3] {
            let go = Arc::new(std::sync::Barrier::new(at_once + 1));
            for _ in 0..at_once {
                let (go, told) = (go.clone(), told.clone());
                let job = Box::new(move || {
                    go.wait();
                    told.send(()).unwrap();
                });
                threads.run(job).map_err(|(_, error)| error).unwrap();
            }
            // All of them are at work at the same time, or nobody gets past here.
            go.wait();
            (0..at_once).for_each(|_| heard.recv().unwrap());
            while threads.idle().threads.len() < at_once {
                thread::yield_now();
            }
        }
        assert_eq!(threads.idle().started, 600);
    }
}
