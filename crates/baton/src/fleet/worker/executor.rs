//! The executor of a queue, between the dispatcher, which brings messages, and the slots that run them. It
//! knows no store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::{AbortHandle, Abortable};
use tokio::{runtime::Handle, task::JoinHandle, time::Instant};
use tracing::{Instrument as _, Span as TraceSpan};

use super::{
    buffer::Buffer,
    held::{Assignment, Completed},
    prefetched::{Assigned, Position},
    slot::Slot,
};
use crate::{
    fleet::{
        emitting::CallScope,
        handler::{self, AnyHandler},
        metrics::{Metrics, Tally},
        node::Worked,
        observer::Observer,
        permits::Permits,
        policy::QueuePolicy,
        traces,
    },
    message::{CallId, MessageId, Name, Run},
    store::session::{Environment, Session},
};

/// Where the messages of one queue are worked on during one session.
pub(in crate::fleet) struct Executor {
    /// What handlers are given of this worker.
    pub(super) scope: Arc<handler::Scope>,
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) policy: QueuePolicy,
    pub(super) environment: Environment,
    pub(super) metrics: Arc<Metrics>,
    /// Those of its queue.
    pub(super) tally: Arc<Tally>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) permits: Arc<Permits>,
    /// Where handlers run.
    runtime: Handle,
    /// What their traces are under.
    span: TraceSpan,
    buffer: Mutex<Buffer>,
    /// Where events of calls go; nothing where there is no store.
    session: Option<Session>,
    /// Messages of calls that are being run, and others that were.
    calls: Mutex<Vec<Weak<CallScope>>>,
}

impl Executor {
    /// An executor whose handlers run in this runtime.
    pub(in crate::fleet) fn new(
        worked: Worked, environment: Environment, metrics: Arc<Metrics>, observer: Arc<dyn Observer>, runtime: Handle,
        session: Option<Session>,
    ) -> Arc<Self> {
        let Worked { queue, handler, policy, permits } = worked;
        let (buffer, span) = (Mutex::new(Buffer::new(queue.clone(), policy.concurrency == 1)), traces::work(&queue));
        let tally = metrics.of(&queue);
        let scope = Arc::new(handler::Scope::new(queue));
        let calls = Mutex::default();
        Arc::new(Self {
            scope,
            handler,
            policy,
            environment,
            metrics,
            tally,
            observer,
            permits,
            runtime,
            span,
            buffer,
            session,
            calls,
        })
    }

    pub(super) fn queue(&self) -> &Name {
        &self.scope.queue
    }

    pub(super) fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a message of a call is given to speak with it; nothing if it is of none.
    pub(super) fn call_scope(&self, assigned: &Assigned) -> Option<Arc<CallScope>> {
        let call = assigned.call(self.queue())?;
        let scope = CallScope::new(call, assigned.name(self.queue()), assigned.claim_no, self.session.clone());
        let scope = Arc::new(scope);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() == calls.capacity() {
            calls.retain(|call| call.strong_count() > 0);
        }
        calls.push(Arc::downgrade(&scope));
        Some(scope)
    }

    /// Ends the work on messages of these calls, named as stores file them, which were cancelled: they go back, and the store
    /// ends them.
    pub(in crate::fleet) fn cancel(&self, calls: &BTreeSet<CallId>) {
        let running: Vec<_> = {
            let running = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            running.iter().filter_map(Weak::upgrade).collect()
        };
        let queue = self.queue();
        let is_cancelled = |assigned: &Assigned| assigned.call(queue).is_some_and(|call| calls.contains(&call.place()));
        // First what is not begun: who is broken off would take it.
        let handed_back = self.buffer().hand_back_those(is_cancelled);
        running.iter().filter(|scope| calls.contains(&scope.call.place())).for_each(|scope| scope.cancel());
        if handed_back {
            self.permits.wake();
        }
    }

    /// Permits that are not held by what earlier sessions left behind.
    pub(super) fn permits_open(&self, buffer: &Buffer) -> usize {
        self.permits.open_to(buffer.slots())
    }

    /// Whether no handler is at work.
    pub(in crate::fleet) fn is_at_rest(&self) -> bool {
        self.buffer().slots() == 0
    }

    /// Starts as many slots as there is work and room for.
    pub(super) fn start_slots(self: &Arc<Self>) {
        let mut slots = Vec::new();
        let mut buffer = self.buffer();
        for _ in 0..buffer.slots_due() {
            let Some(permit) = self.permits.take() else { break };
            let (abort, registration) = AbortHandle::new_pair();
            slots.push((Slot::new(Arc::clone(self), buffer.expect(abort), permit), registration));
        }
        drop(buffer);
        for (slot, registration) in slots {
            let work = slot.work().instrument(self.span.clone());
            drop(self.runtime.spawn(Abortable::new(work, registration)));
        }
    }

    /// A slot comes with what it has completed and gets what it is to do next. It rests if it has to, and after others
    /// were started: they may wait in its very thread, and must not be held up by what it would begin.
    pub(super) fn next(
        self: &Arc<Self>, at: usize, completed: &mut Completed, position: &Arc<Position>, rest: bool,
    ) -> Assignment {
        let mut buffer = self.buffer();
        let left_inline = buffer.came(at, completed);
        let assignment = if left_inline || rest { Assignment::Rest } else { buffer.assign(at, position) };
        let calls = buffer.calls(|| completed.now.unwrap_or_else(Instant::now));
        drop(buffer);
        if calls {
            self.permits.wake();
        }
        if left_inline {
            self.start_slots();
        }
        assignment
    }

    /// A slot that runs messages inline has one that waits; others go on with the rest. Whether it is to stay with it.
    pub(super) fn waits(self: &Arc<Self>, at: usize, id: MessageId, completed: &mut Completed) -> bool {
        let mut buffer = self.buffer();
        let stays = buffer.waits(at, id, completed);
        let calls = buffer.calls(|| completed.now.unwrap_or_else(Instant::now));
        drop(buffer);
        if calls {
            self.permits.wake();
        }
        self.start_slots();
        stays
    }

    /// A slot has ended, or goes because its permit is still held by what it has begun.
    pub(super) fn left(&self, at: usize) {
        if self.buffer().left(at) {
            self.permits.wake();
        }
    }

    /// Whether the runtime of the handlers is shutting down: what they fail with then is not theirs.
    pub(super) fn is_going(&self) -> bool {
        if !self.environment.has_threads() {
            return false;
        }
        let (ran, ran_blocking) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (alive, alive_blocking) = (Arc::clone(&ran), Arc::clone(&ran_blocking));
        // A runtime that goes breaks them off at once: tasks first, and then what may block.
        let task = self.runtime.spawn(async move { alive.store(true, Ordering::SeqCst) });
        let blocking = self.runtime.spawn_blocking(move || alive_blocking.store(true, Ordering::SeqCst));
        let broken_off = |probe: &JoinHandle<()>, ran: &AtomicBool| probe.is_finished() && !ran.load(Ordering::SeqCst);
        broken_off(&task, &ran) || broken_off(&blocking, &ran_blocking)
    }

    /// Breaks off what runs and hands all messages back.
    pub(super) fn stop(&self) {
        let aborted = self.buffer().stop();
        self.end(&aborted);
    }

    /// Ends everything, since others have the messages: what was begun of them and is not reported.
    pub(super) fn lose(&self) -> Vec<Run> {
        let mut buffer = self.buffer();
        let (begun, aborted) = (buffer.begun(), buffer.close());
        drop(buffer);
        self.end(&aborted);
        begun
    }

    /// Ends everything: the messages are others'.
    pub(super) fn close(&self) {
        let aborted = self.buffer().close();
        self.end(&aborted);
    }

    /// Tells handlers that their work is of no more use, which the buffer knows already: whatever they make of it, it is
    /// not reported.
    fn end(&self, aborted: &[AbortHandle]) {
        self.scope.over.send_replace(true);
        aborted.iter().for_each(AbortHandle::abort);
    }
}
