//! A slot: a task of the node's runtime, with a permit of its queue, that runs messages as long as there are any.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    executor::Executor,
    held::{Assignment, Completed},
    mode::{STRETCH, Stretch},
    outbox,
    prefetched::{Assigned, Position},
    running::{Begun, Starter, discard},
};
use crate::{
    fleet::{
        emitting::CallScope,
        event::Event,
        handler::{Context, Done, Failure, Message, Scope, Work},
        observer::tell,
        permits::Permit,
        policy::{MAX_ERROR_BYTES, shortened},
    },
    message::{CALL, CallId, Headers, InvalidMessage, MessageId, Outcome, Parcel, Range, Run},
    store::{MAX_FOLLOW_UP_BYTES, MAX_FOLLOW_UPS, MAX_RESULT_BYTES, bytes_of, session::packed},
};

/// Messages, or time, after which it lets others of its runtime have a turn.
const AT_A_STRETCH: u32 = 8_192;
const TURN: Duration = Duration::from_micros(200);
/// The same for handlers that wait in their thread: they take little of that time of the processor.
const WAITING_TURN: Duration = Duration::from_millis(1);

/// A message whose handler waits, with its work and its call.
type Waits = (Assigned, Work, Option<Arc<CallScope>>);

/// See the module.
pub(super) struct Slot {
    executor: Arc<Executor>,
    entry: usize,
    starter: Starter,
    position: Arc<Position>,
    completed: Completed,
    /// Messages run inline since the clock was read.
    untimed: u32,
    /// When it began with those.
    since: Option<Instant>,
    /// Messages and time since others had a turn.
    run: u32,
    spent: Duration,
}

impl Slot {
    pub(super) fn new(executor: Arc<Executor>, entry: usize, permit: Arc<Permit>) -> Self {
        let starter = Starter::new(Arc::clone(&executor.handler), executor.policy.timeout, permit);
        let (position, completed) = (Arc::default(), Completed::default());
        Self { executor, entry, starter, position, completed, untimed: 0, since: None, run: 0, spent: Duration::ZERO }
    }

    /// Runs messages until there are no more for it.
    pub(super) async fn work(mut self) {
        loop {
            let turn = if self.executor.scope.waits() { WAITING_TURN } else { TURN };
            let rest = self.run >= AT_A_STRETCH || self.spent >= turn || !self.starter.has_its_permit();
            match self.executor.next(self.entry, &mut self.completed, &self.position, rest) {
                Assignment::Nothing => return,
                // A thread that it gave up holds its permit: that is now the thread's.
                Assignment::Rest if !self.starter.has_its_permit() => return self.executor.start_slots(),
                Assignment::Rest => {
                    (self.run, self.spent, self.untimed, self.since) = (0, Duration::ZERO, 0, None);
                    tokio::task::yield_now().await;
                }
                Assignment::One(assigned) => self.run_one(&assigned).await,
                Assignment::Handful { assigned, on_trial } => {
                    let since = *self.since.get_or_insert_with(Instant::now);
                    let Some((one, work, call)) = self.run_handful(&assigned, since, on_trial) else { continue };
                    if self.executor.waits(self.entry, one.id(), &mut self.completed) {
                        // Who goes on with the rest may wait in this very thread.
                        tokio::task::yield_now().await;
                        self.attend(&one, since, work, call).await;
                    } else {
                        // Its message is no longer this slot's, whatever the handler makes of that.
                        discard(work).ok();
                    }
                }
            }
        }
    }

    /// Runs messages inline, up to the first that waits.
    fn run_handful(&mut self, assigned: &Assigned, since: Instant, on_trial: bool) -> Option<Waits> {
        let &Assigned { claim_no, span, ref parcel, from, to, .. } = assigned;
        self.starts(assigned);
        // A message of a call is a span of its own.
        let call = self.executor.call_scope(assigned);
        let scope = &Arc::clone(&self.executor.scope);
        let (mut failed, mut waits) = (0, None);
        let (mut plain, mut last) = (Range { first: span.range.first + u64::from(from), len: 0 }, from);
        loop {
            let index = self.position.next();
            if index >= to {
                break;
            }
            let id = MessageId(span.range.first + u64::from(index));
            match self.starter.try_inline(|| message(scope, assigned, index, call.as_ref())) {
                Begun::Done => plain.len += 1,
                Begun::Ran(result) => {
                    failed += u64::from(result.is_err());
                    self.record_done(claim_no, plain);
                    plain = Range { first: id.0 + 1, len: 0 };
                    self.record(claim_no, id, span.attempts, call.as_ref().map(|call| &call.call), result);
                }
                Begun::Works(work) => {
                    waits = Some((Assigned { from: index, to: index + 1, ..assigned.clone() }, work, call.clone()));
                    break;
                }
            }
            last = index + 1;
        }
        self.record_done(claim_no, plain);
        let ran = last - from;
        if ran > 0 {
            let range = Range { first: span.range.first + u64::from(from), len: ran };
            self.tell(range, failed, &parcel.body(from).unwrap_or_default());
        }
        self.completed.ended += ran as usize;
        self.completed.suspect |= ran > 0 && span.is_suspect();
        self.untimed += ran;
        self.run += ran;
        if on_trial || waits.is_some() || self.untimed >= STRETCH {
            self.read_clock(since, waits.is_some());
        }
        waits
    }

    /// Times what was run inline.
    fn read_clock(&mut self, since: Instant, waits: bool) {
        let now = Instant::now();
        let took = now.saturating_duration_since(since);
        let count = self.untimed + u32::from(waits);
        let pending = if self.executor.scope.waits() { count } else { u32::from(waits) };
        self.completed.inline = Some(Stretch { count, pending, took });
        self.completed.now = Some(now);
        self.spent += took;
        if !waits {
            // One that waits is timed at its end, from here on back.
            self.executor.tally.took(took);
        }
        (self.untimed, self.since) = (0, (!waits).then_some(now));
    }

    /// Runs the one message of a assigned to its end.
    async fn run_one(&mut self, one: &Assigned) {
        self.starts(one);
        let call = self.executor.call_scope(one);
        let begun = Instant::now();
        let (message, context) = message(&self.executor.scope, one, one.from, call.as_ref());
        match self.starter.begin(message, context) {
            Ok(work) => self.attend(one, begun, work, call).await,
            Err(failure) => self.ended(one, begun, true, Err(failure)),
        }
    }

    /// Stays with a message until its handler has ended.
    async fn attend(&mut self, one: &Assigned, begun: Instant, work: Work, call: Option<Arc<CallScope>>) {
        let mut at_once = true;
        let ran = {
            let mut running = pin!(self.starter.running(work));
            let ran = std::future::poll_fn(|context| {
                let polled = running.as_mut().poll(context);
                at_once &= polled.is_ready();
                polled
            });
            match &call {
                None => Some(ran.await),
                Some(call) => tokio::select! {
                    biased;
                    ran = ran => Some(ran),
                    () = call.cancelled() => None,
                },
            }
        };
        match ran {
            Some(ran) => {
                let result = self.starter.reuse(ran);
                self.ended(one, begun, at_once, result);
            }
            None => self.broken_off(one),
        }
    }

    /// The call of a message was cancelled while its handler worked: it goes back, and the store ends it.
    fn broken_off(&mut self, one: &Assigned) {
        let (claim_no, queue) = (one.claim_no, self.executor.queue().clone());
        self.completed.runs.push(Run { claim_no, queue, range: one.range(), outcome: Outcome::Back });
        self.completed.ended += 1;
        self.completed.now = Some(Instant::now());
        (self.run, self.spent, self.since) = (0, Duration::ZERO, None);
    }

    fn ended(&mut self, one: &Assigned, begun: Instant, at_once: bool, result: Result<Done, Failure>) {
        let now = Instant::now();
        let took = now.saturating_duration_since(begun);
        self.executor.tally.took(took);
        self.tell(one.range(), u64::from(result.is_err()), &one.parcel.body(one.from).unwrap_or_default());
        let call = one.call(self.executor.queue());
        self.record(one.claim_no, one.id(), one.span.attempts, call.as_ref(), result);
        self.completed.ended += 1;
        self.completed.suspect |= one.span.is_suspect();
        self.completed.in_a_task = Some((at_once && !self.executor.scope.waits(), took));
        self.completed.now = Some(now);
        (self.run, self.spent) = if at_once { (self.run + 1, self.spent + took) } else { (0, Duration::ZERO) };
        self.since = None;
    }

    /// Counts how long the messages of a span waited, at the first of them. Of those that come again it is not known
    /// since when they were due: they would count from their push.
    fn starts(&self, assigned: &Assigned) {
        self.executor.tally.given();
        if assigned.from == 0 && assigned.span.is_untried() {
            self.executor.metrics.started(u64::from(assigned.span.range.len), assigned.span.born);
        }
    }

    /// Counts messages that were run, and tells of them.
    fn tell(&self, range: Range, failed: u64, first_body: &Bytes) {
        self.executor.tally.ran(u64::from(range.len), failed);
        self.executor.observer.ran(self.executor.queue(), range, first_body);
    }

    /// Notes messages that are done and leave nothing behind.
    fn record_done(&mut self, claim_no: u64, range: Range) {
        if range.len > 0 {
            let queue = self.executor.queue().clone();
            outbox::add(&mut self.completed.runs, Run { claim_no, queue, range, outcome: Outcome::DONE });
        }
    }

    /// Notes an outcome for the next report.
    fn record(
        &mut self, claim_no: u64, id: MessageId, attempts: u32, call: Option<&CallId>, result: Result<Done, Failure>,
    ) {
        let executor = &self.executor;
        let outcome = match result {
            Ok(done) => match self.within_bounds(id, done, call) {
                Ok(Done { result, follow_ups }) => Outcome::Done { result, follow_ups },
                Err(failure) => self.failed(id, attempts, failure),
            },
            Err(failure) => self.failed(id, attempts, failure),
        };
        let (queue, range) = (executor.queue().clone(), Range::one(id));
        outbox::add(&mut self.completed.runs, Run { claim_no, queue, range, outcome });
    }
}

impl Slot {
    /// What a message leaves behind, as it is stored: follow-ups in as few parcels as hold them, too many of which are its
    /// failure; a result that is too long is left out, which is told.
    fn within_bounds(&self, id: MessageId, done: Done, call: Option<&CallId>) -> Result<Done, Failure> {
        let Done { mut result, mut follow_ups } = done;
        for submission in follow_ups.iter_mut().filter(|submission| submission.call.is_some()) {
            match call {
                Some(call) => submission.parcel = joining(&submission.parcel, call).map_err(Failure::fatal)?,
                None => submission.call = None,
            }
        }
        if follow_ups.len() > 1 {
            follow_ups = packed(follow_ups);
        }
        let (parcels, bytes) = (follow_ups.len(), bytes_of(&follow_ups));
        if parcels > MAX_FOLLOW_UPS || bytes > MAX_FOLLOW_UP_BYTES {
            return Err(Failure::fatal(format!(
                "its follow-ups are {parcels} parcels and {bytes} bytes, more than {MAX_FOLLOW_UPS} or \
                 {MAX_FOLLOW_UP_BYTES}: let several messages push them"
            )));
        }
        if let Some(long) = result.take_if(|result| result.len() > MAX_RESULT_BYTES) {
            let (queue, bytes) = (self.executor.queue().clone(), long.len());
            tell(&*self.executor.observer, &Event::ResultLeftOut { queue, id, bytes });
        }
        Ok(Done { result, follow_ups })
    }

    /// What becomes of a message that failed, which is told.
    fn failed(&self, id: MessageId, attempts: u32, failure: Failure) -> Outcome {
        let executor = &self.executor;
        let error = shortened(failure.error.clone(), MAX_ERROR_BYTES);
        let outcome = executor.policy.after_failure(attempts, failure, executor.environment.chance());
        let retry_after = match outcome {
            Outcome::Retry { after_ms, .. } => Some(Duration::from_millis(after_ms)),
            _ => None,
        };
        let (queue, attempt) = (executor.queue().clone(), attempts + 1);
        tell(&*executor.observer, &Event::MessageFailed { queue, id, attempt, error, retry_after });
        outcome
    }
}

/// A message as its handler is given it, made in place: each copy of it costs as much as all the rest.
#[expect(clippy::inline_always, reason = "else it is made here and copied to where the handler gets it, per message")]
#[inline(always)]
fn message(scope: &Arc<Scope>, assigned: &Assigned, index: u32, call: Option<&Arc<CallScope>>) -> (Message, Context) {
    let span = &assigned.span;
    let message = Message {
        queue: scope.queue.clone(),
        id: MessageId(span.range.first + u64::from(index)),
        born: span.born,
        attempts: span.attempts,
        crashes: span.crashes,
        body: assigned.parcel.body(index).unwrap_or_default(),
    };
    // Only what was retried has something to tell.
    let last_error = if span.attempts > 0 { assigned.parcel.headers(index).last_error() } else { None };
    let context = Context::new(scope, &message, last_error, call.cloned());
    (message, context)
}

/// The parcel of a message that joins a call, which it names.
fn joining(parcel: &Parcel, call: &CallId) -> Result<Parcel, InvalidMessage> {
    let headers = parcel.headers(0);
    let own = headers.own.with(CALL, Some(call.to_string().as_bytes()))?;
    Parcel::of_stored(&Headers { shared: headers.shared, own }, &parcel.body(0).unwrap_or_default())
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.executor.left(self.entry);
    }
}
