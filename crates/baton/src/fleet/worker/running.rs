//! Handlers at work.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::fleet::handler::{AnyHandler, Context, Done, Failure, Message, Work};

/// Begins work on messages, in the memory of work that has ended.
pub(super) struct Starter {
    handler: Arc<dyn AnyHandler>,
    deadline: Option<Duration>,
    spare: Vec<Work>,
}

/// What became of a message that was begun.
pub(super) enum Begun {
    /// Its handler was ready at once.
    Ran(Result<Done, Failure>),
    /// Its handler is at work.
    Works(Work),
}

/// A message whose handler is at work. It ends with the outcome whatever the handler does: a panic or a deadline is a
/// failure.
pub(super) struct Running {
    pub(super) claim_no: u64,
    pub(super) id: u64,
    attempts: u32,
    body: Bytes,
    begun: Instant,
    deadline: Option<(Duration, Pin<Box<Sleep>>)>,
    work: Option<Work>,
}

/// A message whose handler has ended.
pub(super) struct Ran {
    pub(super) claim_no: u64,
    pub(super) id: u64,
    pub(super) attempts: u32,
    pub(super) body: Bytes,
    pub(super) result: Result<Done, Failure>,
    pub(super) took: Duration,
    /// Its memory.
    pub(super) work: Option<Work>,
}

impl Starter {
    pub(super) fn new(handler: Arc<dyn AnyHandler>, deadline: Option<Duration>) -> Self {
        Self { handler, deadline, spare: Vec::new() }
    }

    /// Calls the handler, and polls once.
    pub(super) fn begin(&mut self, message: Message, context: Context) -> Begun {
        let spare = self.spare.pop();
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut work = self.handler.begin(spare, message, context);
            let polled = work.poll(&mut TaskContext::from_waker(Waker::noop()));
            (work, polled)
        }));
        match begun {
            Ok((work, Poll::Pending)) => Begun::Works(work),
            Ok((work, Poll::Ready(result))) => {
                self.spare.push(work);
                Begun::Ran(result)
            }
            Err(panic) => Begun::Ran(Err(panicked(&*panic))),
        }
    }

    /// The message of a handler that is at work, to be polled on.
    pub(super) fn running(&self, claim_no: u64, id: u64, attempts: u32, body: Bytes, work: Work) -> Running {
        let begun = Instant::now();
        let deadline = self.deadline.map(|deadline| (deadline, Box::pin(sleep_until(begun + deadline))));
        Running { claim_no, id, attempts, body, begun, deadline, work: Some(work) }
    }

    /// Keeps the memory of work that has ended.
    pub(super) fn reuse(&mut self, work: Option<Work>) {
        self.spare.extend(work);
    }
}

impl Future for Running {
    type Output = Ran;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Ran> {
        let this = &mut *self;
        let Some(work) = &mut this.work else { return Poll::Pending };
        let (result, work) = match catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
            Ok(Poll::Ready(result)) => (result, this.work.take()),
            Err(panic) => (Err(panicked(&*panic)), None),
            Ok(Poll::Pending) => {
                let Some((deadline, late)) = &mut this.deadline else { return Poll::Pending };
                ready!(late.as_mut().poll(context));
                (Err(Failure::new(format_args!("it took longer than its deadline of {deadline:?}"))), None)
            }
        };
        // What panicked or is late is dropped.
        this.work = None;
        let Self { claim_no, id, attempts, .. } = *this;
        let body = std::mem::take(&mut this.body);
        Poll::Ready(Ran { claim_no, id, attempts, body, result, took: this.begun.elapsed(), work })
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::new(format_args!("the handler panicked: {text}"))
}
