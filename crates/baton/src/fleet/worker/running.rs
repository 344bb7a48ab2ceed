//! Handlers at work.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, Waker, ready},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

use crate::fleet::{
    handler::{AnyHandler, Context, Done, Failure, Message, Work, panicked},
    permits::Permit,
};

/// Begins work on messages, in the memory of work that has ended.
pub(super) struct Starter {
    handler: Arc<dyn AnyHandler>,
    timeout: Option<Duration>,
    permit: Arc<Permit>,
    spare: Option<Work>,
}

/// What became of a message that was begun.
pub(super) enum Begun {
    /// Its handler was ready at once, and it leaves nothing behind.
    Done,
    /// Its handler was ready at once.
    Ran(Result<Done, Failure>),
    /// Its handler is at work.
    Works(Work),
}

/// Work on a message. It ends with the outcome whatever the handler does: a panic, also at its drop, or a timeout is a failure.
pub(super) struct Running {
    timeout: Option<(Duration, Pin<Box<Sleep>>)>,
    work: Option<Work>,
}

/// Work that has ended.
pub(super) struct Ran {
    pub(super) result: Result<Done, Failure>,
    /// Its memory.
    work: Option<Work>,
}

impl Starter {
    pub(super) fn new(handler: Arc<dyn AnyHandler>, timeout: Option<Duration>, permit: Arc<Permit>) -> Self {
        Self { handler, timeout, permit, spare: None }
    }

    /// Whether nothing but the starter holds its permit.
    pub(super) fn has_its_permit(&self) -> bool {
        Arc::strong_count(&self.permit) == 1
    }

    /// Calls the handler, and polls once inline. The message is made where the handler is called, and what most of them
    /// come to is told apart at once: moving either costs more than a handler that does little.
    #[inline]
    pub(super) fn try_inline(&mut self, message: impl FnOnce() -> (Message, Context)) -> Begun {
        let Self { handler, permit, spare, .. } = self;
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let (message, context) = message();
            let mut work = handler.begin(spare.take(), message, context, permit);
            let ran = match work.poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Pending => return Begun::Works(work),
                Poll::Ready(Ok(done)) if done.is_plain() => Begun::Done,
                Poll::Ready(result) => Begun::Ran(result),
            };
            *spare = Some(work);
            ran
        }));
        begun.unwrap_or_else(|panic| Begun::Ran(Err(panicked(panic))))
    }

    /// Calls the handler; its work is still to be polled.
    ///
    /// # Errors
    /// If the handler panics before it gives any.
    pub(super) fn begin(&mut self, message: Message, context: Context) -> Result<Work, Failure> {
        let spare = self.spare.take();
        let begun = catch_unwind(AssertUnwindSafe(|| self.handler.begin(spare, message, context, &self.permit)));
        begun.map_err(panicked)
    }

    /// Work to be polled to its end, at the latest its timeout from now on.
    pub(super) fn running(&self, work: Work) -> Running {
        let timeout = self.timeout.map(|timeout| (timeout, Box::pin(sleep(timeout))));
        Running { timeout, work: Some(work) }
    }

    /// The result of work that has ended, whose memory is kept.
    pub(super) fn reuse(&mut self, ran: Ran) -> Result<Done, Failure> {
        self.spare = ran.work;
        ran.result
    }
}

impl Future for Running {
    type Output = Ran;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Ran> {
        let this = &mut *self;
        let Some(work) = &mut this.work else { return Poll::Pending };
        let result = match catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ran { result, work: this.work.take() }),
            Err(panic) => Err(panicked(panic)),
            Ok(Poll::Pending) => {
                let Some((timeout, late)) = &mut this.timeout else { return Poll::Pending };
                ready!(late.as_mut().poll(context));
                Err(Failure::new(format_args!("it took longer than its timeout of {timeout:?}")))
            }
        };
        // What panicked or is late is dropped, and may panic at that.
        let result = this.work.take().map_or(Ok(()), discard).and(result);
        Poll::Ready(Ran { result, work: None })
    }
}

/// Drops work that is not gone on with; a panic at that is the handler's.
pub(super) fn discard(work: Work) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(|| drop(work))).map_err(panicked)
}
