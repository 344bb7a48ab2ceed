//! Handlers that are plain functions: each message on a thread of its own, within the seats of its queue.

use std::{marker::PhantomData, sync::Arc};

use serde::de::DeserializeOwned;

use super::{
    handler::{AnyHandler, Context, Done, Failure, Message, Work, not_taken, panicked, placed},
    seats::Seat,
};

/// A function over bodies of type `T` that may block.
///
/// The function cannot be broken off. Its thread keeps the seat until it returns, also after its message has passed its
/// deadline or its session is over: however many messages are given up, no more threads are held than the queue has
/// seats.
pub(super) struct Blocking<T, F> {
    function: Arc<F>,
    body: PhantomData<fn(T)>,
}

impl<T, F> Blocking<T, F> {
    pub(super) fn new(function: F) -> Self {
        Self { function: Arc::new(function), body: PhantomData }
    }
}

impl<T, F> AnyHandler for Blocking<T, F>
where
    T: DeserializeOwned + 'static,
    F: Fn(T, Context) -> Result<Done, Failure> + Send + Sync + 'static,
{
    fn begin(&self, spare: Option<Work>, message: Message, context: Context, seat: &Arc<Seat>) -> Work {
        let (function, seat) = (Arc::clone(&self.function), Arc::clone(seat));
        placed(spare, async move {
            let on_thread = move || {
                // Dropped when the function has returned, and before anybody hears of it.
                let _seat = seat;
                match serde_json::from_slice(&message.body) {
                    Ok(body) => function(body, context),
                    Err(error) => Err(not_taken(&error)),
                }
            };
            match tokio::task::spawn_blocking(on_thread).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => Err(panicked(&*error.into_panic())),
                Err(_) => Err(Failure::new("the runtime of its node was shut down")),
            }
        })
    }
}
