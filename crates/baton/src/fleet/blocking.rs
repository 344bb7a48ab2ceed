//! Handlers that are plain functions: each message on a thread of its own, within the seats of its queue.

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
    seats::Seat,
    threads::{Job, Threads},
};

/// How long one waits for a thread that the system does not give.
const NO_THREAD_PAUSE: Duration = Duration::from_millis(100);

/// A function over bodies of type `T` that may block.
///
/// The function cannot be broken off. Its thread keeps the seat until it returns, also after its message has passed its
/// deadline or its session is over: however many messages are given up, no more threads are held than the queue has
/// seats.
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
    fn begin(&self, spare: Option<Work>, message: Message, context: Context, seat: &Arc<Seat>) -> Work {
        let (function, threads, seat) = (Arc::clone(&self.function), Arc::clone(&self.threads), Arc::clone(seat));
        placed(spare, async move {
            let (reply, answer) = oneshot::channel();
            let runtime = Handle::current();
            let mut job: Job = Box::new(move || {
                let _entered = runtime.enter();
                let run = || match serde_json::from_slice(&message.body) {
                    Ok(body) => function(body, context),
                    Err(error) => Err(not_taken(&error)),
                };
                let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(&*panic)));
                // Given up before anybody hears of the end.
                drop(seat);
                reply.send(result).ok();
            });
            while let Err((unrun, _)) = threads.run(job) {
                job = unrun;
                tokio::time::sleep(NO_THREAD_PAUSE).await;
            }
            match answer.await {
                Ok(result) => result,
                // A job is run or handed back, never dropped.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
