//! The I/O thread: the one thread of a process on which nodes call the store.
//!
//! Claims, reports, pushes and all tasks of a node's session run here, so that none of them ever waits for a handler,
//! whatever that does to the threads of its own runtime. The first node starts it; a program that only pushes has none.
//! It has nothing of the user's in it but the [`Observer`](super::Observer), which is quick. Where there are no threads
//! (see [`Environment`]), the I/O thread is the caller's runtime.
//!
//! If the system gives no thread, the node ends with an error that says so, and the next one tries again.

use std::{
    io,
    sync::{Mutex, PoisonError},
    thread,
};

use tokio::{
    runtime::{Builder, Handle},
    task::{JoinError, JoinSet},
};

use crate::store::{StoreError, session::Environment};

/// The way to the thread, once there is one.
static IO_THREAD: Mutex<Option<Handle>> = Mutex::new(None);

/// Runs the work on the I/O thread and gives what it came to.
///
/// # Errors
/// [`StoreError::Unreachable`] if there is no thread to be had, or the work was broken off.
///
/// # Cancel safety
/// Dropped, it ends the work too.
pub(super) async fn run<T: Send + 'static>(
    environment: &Environment, work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StoreError> {
    if !environment.has_threads() {
        return Ok(work.await);
    }
    let io_thread = handle().map_err(|error| {
        StoreError::Unreachable(format!("cannot start the thread on which nodes call the store: {error}"))
    })?;
    let mut task = JoinSet::new();
    task.spawn_on(work, &io_thread);
    match task.join_next().await {
        Some(done) => done.map_err(broken_off),
        None => Err(lost()),
    }
}

fn handle() -> io::Result<Handle> {
    let mut io_thread = IO_THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = &*io_thread {
        return Ok(open.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("baton-io".to_owned());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(io_thread.insert(handle).clone())
}

fn broken_off(error: JoinError) -> StoreError {
    if error.is_panic() {
        std::panic::resume_unwind(error.into_panic());
    }
    lost()
}

fn lost() -> StoreError {
    StoreError::Unreachable("the node was broken off".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    #[tokio::test]
    async fn work_runs_on_one_thread_of_its_own_and_ends_with_who_waits_for_it() {
        let name = || thread::current().name().map(ToOwned::to_owned);
        let (environment, here) = (Environment::system(), thread::current().id());
        let there = run(&environment, async { thread::current().id() }).await.unwrap();
        assert_ne!(there, here);
        assert_eq!(run(&environment, async move { name() }).await.unwrap().as_deref(), Some("baton-io"));
        assert_eq!(run(&Environment::simulated(1), async { thread::current().id() }).await.unwrap(), here);

        struct Told(Arc<AtomicBool>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let gone = Arc::new(AtomicBool::new(false));
        let told = Told(gone.clone());
        let waiting = run(&environment, async move {
            std::future::pending::<()>().await;
            drop(told);
        });
        tokio::time::timeout(std::time::Duration::from_millis(1), waiting).await.unwrap_err();
        while !gone.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }
}
