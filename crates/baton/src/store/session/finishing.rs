//! A future that is finished even if nobody waits for it any more.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// Polled where it is awaited, without a task of its own; dropped before its end, it goes on in one.
pub(super) struct Finishing<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> Finishing<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        // Without a runtime there is nothing left that could carry it on: the lease does the rest.
        if let (Some(future), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}
