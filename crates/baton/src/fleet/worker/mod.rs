//! The worker of one queue: claims ahead, runs handlers, reports what they came to.
//!
//! * At most [`QueuePolicy::concurrency`] handlers run at once. What is claimed beyond that follows the measured time
//!   of a handler, so that slow work is spread over the fleet and fast work never waits for a round trip.
//! * A handler that is ready at once is completed on the spot, without a task and without a trip through the scheduler.
//! * Outcomes are reported as they come; what comes while a report is under way goes into the next.
//! * While its gate is closed it claims nothing and hands back what it has not begun.
//! * When the session is over, everything is dropped at once: others have the messages.

mod hand;
mod pace;
mod running;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::{sync::watch, time::Instant};

use self::{
    hand::{Hand, Next},
    pace::Pace,
    running::{Begun, Ran, Running, Starter},
};
use super::{
    BoxFuture, Cancel,
    handler::{self, AnyHandler, Context, Done, Failure, Message},
    observer::Observer,
    policy::QueuePolicy,
    tally::Tally,
};
use crate::{
    message::{Name, Outcome, Range, Run},
    store::{
        MAX_WAIT, Settled, Stop, StoreError,
        session::{Catch, Session},
    },
};

/// Claims under way at once.
const CLAIMS_UNDER_WAY: usize = 2;
/// The most body bytes asked for in one claim.
const CLAIM_BYTES: u64 = 4 << 20;
/// Messages completed on the spot before the worker looks at everything else.
const AT_A_STRETCH: u32 = 512;

/// What a worker is made of.
pub(super) struct Worker {
    pub(super) session: Session,
    pub(super) queue: Name,
    pub(super) handler: Arc<dyn AnyHandler>,
    pub(super) policy: QueuePolicy,
    /// Whether it may claim.
    pub(super) gate: watch::Receiver<bool>,
    pub(super) cancel: Cancel,
    pub(super) tally: Arc<Tally>,
    pub(super) observer: Arc<dyn Observer>,
}

/// A claim under way.
struct Claiming {
    /// How many messages it asks for.
    n: u32,
    caught: BoxFuture<'static, Result<Catch, StoreError>>,
}

impl Future for Claiming {
    type Output = (u32, Result<Catch, StoreError>);

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.caught.as_mut().poll(context).map(|caught| (self.n, caught))
    }
}

/// A worker's state.
struct Shift {
    worker: Worker,
    hand: Hand,
    pace: Pace,
    starter: Starter,
    running: FuturesUnordered<Running>,
    claims: FuturesUnordered<Claiming>,
    /// The report under way.
    settling: Option<BoxFuture<'static, Result<Settled, StoreError>>>,
    /// Outcomes not reported yet.
    outcomes: Vec<Run>,
    /// A claim that waits for messages, after one found none.
    waiting: Option<Claiming>,
    /// What handlers are given of this worker.
    context: Arc<handler::Shift>,
}

/// Messages with consecutive ids that were run one after the other.
struct Stretch {
    range: Range,
    first_body: Bytes,
    failed: u64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { range: Range { first: 0, len: 0 }, first_body: Bytes::new(), failed: 0 }
    }
}

impl Stretch {
    fn from(id: u64, failed: bool, first_body: Bytes) -> Self {
        Self { range: Range { first: id, len: 1 }, first_body, failed: u64::from(failed) }
    }

    /// Adds a message; false if it is not the next.
    fn add(&mut self, id: u64, failed: bool) -> bool {
        let is_next = self.range.len > 0 && self.range.end() == id;
        if is_next {
            self.range.len += 1;
            self.failed += u64::from(failed);
        }
        is_next
    }
}

impl Worker {
    /// Works until it is asked to stop, with everything settled or handed back, or until the session is over.
    ///
    /// # Errors
    /// The store's failure if repeating cannot help.
    pub(super) async fn run(self) -> Result<(), StoreError> {
        let shift = Shift {
            hand: Hand::default(),
            pace: Pace::new(self.policy.concurrency),
            running: FuturesUnordered::new(),
            claims: FuturesUnordered::new(),
            settling: None,
            outcomes: Vec::new(),
            waiting: None,
            starter: Starter::new(self.handler.clone(), self.policy.deadline),
            context: Arc::new(handler::Shift { queue: self.queue.clone(), over: watch::Sender::new(false) }),
            worker: self,
        };
        let session = shift.worker.session.clone();
        tokio::select! {
            ended = shift.work() => ended,
            () = session.over() => Ok(()),
        }
    }
}

impl Shift {
    async fn work(mut self) -> Result<(), StoreError> {
        let mut gate = self.worker.gate.clone();
        let cancel = self.worker.cancel.clone();
        loop {
            let stop = cancel.asked();
            let open = *gate.borrow_and_update() && stop.is_none();
            if !open {
                self.hand_back();
            }
            if stop == Some(Stop::Now) {
                self.drop_running();
            }
            let more = self.start();
            self.report();
            if open {
                self.claim();
            } else if stop.is_some() && self.is_done() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(ran) = self.running.next() => self.ran(ran),
                Some((n, caught)) = self.claims.next() => self.caught(n, caught?),
                settled = settled(&mut self.settling) => self.settled(settled?),
                (n, caught) = woken(&mut self.waiting) => {
                    self.waiting = None;
                    self.caught(n, caught?);
                }
                changed = gate.changed() => if changed.is_err() { return Ok(()) },
                () = cancel.any(), if stop.is_none() => {}
                () = cancel.at_once(), if stop == Some(Stop::Drain) => {}
                () = std::future::ready(()), if more => tokio::task::yield_now().await,
            }
        }
    }

    /// Whether nothing is left that has to be ended in good order.
    fn is_done(&self) -> bool {
        self.running.is_empty() && self.claims.is_empty() && self.settling.is_none() && self.outcomes.is_empty()
    }

    /// Starts messages while there is room; whether it stopped with work left that could be started at once.
    fn start(&mut self) -> bool {
        let begun = Instant::now();
        let mut at_once = 0;
        let mut stretch = Stretch::default();
        while self.running.len() < self.worker.policy.concurrency && at_once < AT_A_STRETCH {
            let Some(Next { claim_no, id, born, attempts, losses, body, is_first, of }) = self.hand.next() else {
                break;
            };
            if is_first {
                self.worker.tally.started(u64::from(of), born);
            }
            let message = Message { queue: self.context.queue.clone(), id, born, attempts, losses, body };
            let context = Context::new(&self.context, &message);
            match self.starter.begin(message, context) {
                Begun::Ran(result) => {
                    at_once += 1;
                    let failed = result.is_err();
                    self.record(claim_no, id, attempts, result);
                    if !stretch.add(id, failed) {
                        self.tell(&stretch);
                        stretch = Stretch::from(id, failed, self.hand.last_body());
                    }
                }
                Begun::Works(work) => {
                    let body = self.hand.last_body();
                    self.running.push(self.starter.running(claim_no, id, attempts, body, work));
                }
            }
        }
        self.tell(&stretch);
        if at_once > 0 {
            self.pace.took(begun.elapsed() / at_once, at_once);
        }
        at_once >= AT_A_STRETCH
    }

    fn ran(&mut self, ran: Ran) {
        let mut ran = Some(ran);
        while let Some(Ran { claim_no, id, attempts, body, result, took, work }) = ran {
            self.pace.took(took, 1);
            self.starter.reuse(work);
            self.tell(&Stretch::from(id, result.is_err(), body));
            self.record(claim_no, id, attempts, result);
            // Those that became ready meanwhile go into the same report.
            ran = self.running.next().now_or_never().flatten();
        }
    }

    /// Counts messages that were run, and tells of them.
    fn tell(&self, stretch: &Stretch) {
        if stretch.range.len > 0 {
            self.worker.tally.ran(u64::from(stretch.range.len), stretch.failed);
            self.worker.observer.ran(&self.worker.queue, stretch.range, &stretch.first_body);
        }
    }

    /// Notes an outcome for the next report.
    fn record(&mut self, claim_no: u64, id: u64, attempts: u32, result: Result<Done, Failure>) {
        let outcome = match result {
            Ok(done) => Outcome::Done { result: done.result, follow_ups: done.follow_ups },
            Err(failure) => self.worker.policy.after_failure(attempts, failure, chance()),
        };
        match self.outcomes.last_mut() {
            Some(last)
                if last.claim_no == claim_no
                    && last.range.end() == id
                    && last.outcome == Outcome::DONE
                    && outcome == Outcome::DONE =>
            {
                last.range.len += 1;
            }
            _ => {
                let (queue, range) = (self.worker.queue.clone(), Range { first: id, len: 1 });
                self.outcomes.push(Run { claim_no, queue, range, outcome });
            }
        }
    }

    /// Reports what there is, unless a report is under way.
    fn report(&mut self) {
        if self.settling.is_none() && !self.outcomes.is_empty() {
            self.worker.observer.settling();
            let (session, runs) = (self.worker.session.clone(), std::mem::take(&mut self.outcomes));
            self.settling = Some(Box::pin(async move { session.settle(runs).await }));
        }
    }

    fn settled(&mut self, settled: Settled) {
        self.settling = None;
        if !settled.refused.is_empty() {
            self.worker.observer.told(&format!("{} run(s) were refused: others have them", settled.refused.len()));
        }
    }

    fn claim(&mut self) {
        while self.claims.len() < CLAIMS_UNDER_WAY && self.waiting.is_none() {
            let Some(claiming) = self.claiming(None) else { return };
            self.claims.push(claiming);
        }
    }

    /// A claim of as much as is wanted now, which waits for messages for a while if told so.
    fn claiming(&mut self, wait: Option<Duration>) -> Option<Claiming> {
        let n = self.pace.wanted(self.running.len(), self.hand.len(), self.claims.len())?;
        self.pace.asked(n);
        let (session, queue) = (self.worker.session.clone(), vec![self.worker.queue.clone()]);
        let caught = Box::pin(async move {
            match wait {
                Some(limit) => session.claim_when_ready(n, CLAIM_BYTES, queue, limit).await,
                None => session.claim(n, CLAIM_BYTES, queue).await,
            }
        });
        Some(Claiming { n, caught })
    }

    fn caught(&mut self, n: u32, catch: Catch) {
        self.pace.answered(n);
        match catch {
            Catch::Some(held) => {
                let (claim_no, _, pieces) = held.into_parts();
                self.hand.add(claim_no, pieces);
            }
            Catch::Empty { next_due_ms } => {
                let limit = next_due_ms.map_or(MAX_WAIT, |ms| Duration::from_millis(ms.max(1)).min(MAX_WAIT));
                if self.waiting.is_none() {
                    self.waiting = self.claiming(Some(limit));
                }
            }
        }
    }

    /// Hands back what has not been begun.
    fn hand_back(&mut self) {
        let queue = &self.worker.queue;
        let back = |(claim_no, range)| Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back };
        self.outcomes.extend(self.hand.drain().map(back));
        // What it may still catch goes back by itself.
        if let Some(waiting) = self.waiting.take() {
            self.pace.answered(waiting.n);
        }
    }

    /// Drops handlers at work and hands their messages back.
    fn drop_running(&mut self) {
        self.context.over.send_replace(true);
        let queue = self.worker.queue.clone();
        for running in std::mem::take(&mut self.running) {
            let range = Range { first: running.id, len: 1 };
            self.outcomes.push(Run { claim_no: running.claim_no, queue: queue.clone(), range, outcome: Outcome::Back });
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.context.over.send_replace(true);
    }
}

async fn settled(
    settling: &mut Option<BoxFuture<'static, Result<Settled, StoreError>>>,
) -> Result<Settled, StoreError> {
    match settling {
        Some(settling) => settling.await,
        None => std::future::pending().await,
    }
}

async fn woken(waiting: &mut Option<Claiming>) -> (u32, Result<Catch, StoreError>) {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}

/// A number from 0 to 1, for jitter.
fn chance() -> f64 {
    let mut bytes = [0; 2];
    // Without random numbers the pause is merely not spread.
    getrandom::fill(&mut bytes).ok();
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}
