//! A handler at work on one message.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::hand::Next;
use crate::fleet::{
    BoxFuture,
    handler::{Context, Done, Failure, Handler, Message},
};

/// A future that ends with the outcome of its message, whatever the handler does: a panic or a deadline is a failure.
pub(super) struct Running {
    claim_no: u64,
    message: Option<Message>,
    id: u64,
    begun: Instant,
    work: BoxFuture<'static, Result<Done, Failure>>,
}

/// A message whose handler has ended.
pub(super) struct Ran {
    pub(super) claim_no: u64,
    pub(super) message: Message,
    pub(super) result: Result<Done, Failure>,
    pub(super) took: Duration,
}

impl Running {
    pub(super) fn new(
        handler: &dyn Handler, next: Next, message: Message, context: Context, deadline: Option<Duration>,
    ) -> Self {
        let told = message.clone();
        let work = std::panic::catch_unwind(AssertUnwindSafe(|| handler.handle(message, context)));
        let work: BoxFuture<'static, Result<Done, Failure>> = match (work, deadline) {
            (Err(panic), _) => Box::pin(std::future::ready(Err(panicked(&*panic)))),
            (Ok(work), None) => work,
            (Ok(work), Some(deadline)) => Box::pin(async move {
                let late = |_| Err(Failure::new(format_args!("it took longer than its deadline of {deadline:?}")));
                tokio::time::timeout(deadline, work).await.unwrap_or_else(late)
            }),
        };
        Self { claim_no: next.claim_no, id: next.id, message: Some(told), begun: Instant::now(), work }
    }

    /// The claim that holds its message, and the message's id.
    pub(super) const fn token(&self) -> (u64, u64) {
        (self.claim_no, self.id)
    }
}

impl Future for Running {
    type Output = Ran;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Ran> {
        let this = &mut *self;
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| this.work.poll_unpin(context)));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => result,
            Err(panic) => Err(panicked(&*panic)),
        };
        match this.message.take() {
            Some(message) => Poll::Ready(Ran { claim_no: this.claim_no, message, result, took: this.begun.elapsed() }),
            None => Poll::Pending,
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::new(format_args!("the handler panicked: {text}"))
}
