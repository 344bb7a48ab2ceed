//! Handlers that are plain functions: each message on a thread of its own, within the permits of its queue.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use serde::de::DeserializeOwned;
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    handler::{AnyHandler, Context, Done, Failure, Message, Work, not_taken, panicked, placed},
    permits::Permit,
    threads::{Job, Threads},
};

/// How long one waits for a thread that the system does not give.
const NO_THREAD_PAUSE: Duration = Duration::from_millis(100);

/// A function over bodies of type `T` that may block.
///
/// The function cannot be broken off. Its thread keeps the permit until it returns, also after its message has passed its
/// timeout or its session is over: however many messages are given up, no more threads are held than the queue has
/// permits.
pub(super) struct Blocking<T, F> {
    function: Arc<F>,
    threads: Arc<Threads>,
    body: PhantomData<fn(T)>,
}

impl<T, F> Blocking<T, F> {
    pub(super) fn new(function: F) -> Self {
        Self { function: Arc::new(function), threads: Arc::default(), body: PhantomData }
    }
}

impl<T, F> AnyHandler for Blocking<T, F>
where
    T: DeserializeOwned + 'static,
    F: Fn(T, Context) -> Result<Done, Failure> + Send + Sync + 'static,
{
    fn begin(&self, spare: Option<Work>, message: Message, context: Context, permit: &Arc<Permit>) -> Work {
        let (function, threads, permit) = (Arc::clone(&self.function), Arc::clone(&self.threads), Arc::clone(permit));
        placed(spare, async move {
            let (reply, answer) = oneshot::channel();
            let runtime = Handle::current();
            let mut job: Job = Box::new(move || {
                let _entered = runtime.enter();
                let run = || match serde_json::from_slice(&message.body) {
                    Ok(body) => function(body, context),
                    Err(error) => Err(not_taken(&error)),
                };
                let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(panic)));
                // Given up before anybody hears of the end.
                drop(permit);
                reply.send(result).ok();
            });
            while let Err((unrun, _)) = threads.run(job) {
                job = unrun;
                tokio::time::sleep(NO_THREAD_PAUSE).await;
            }
            // A job is run or handed back, never dropped, and what it runs cannot break out of it.
            answer.await.unwrap_or_else(|_| Err(Failure::new("the thread of the function ended before it did")))
        })
    }
}
