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

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::{sync::watch, time::Instant};

use self::{
    hand::Hand,
    pace::Pace,
    running::{Ran, Running},
};
use super::{
    BoxFuture, Cancel,
    handler::{Context, Handler, Message},
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
    pub(super) handler: Arc<dyn Handler>,
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
    running: FuturesUnordered<Running>,
    claims: FuturesUnordered<Claiming>,
    /// The report under way.
    settling: Option<BoxFuture<'static, Result<Settled, StoreError>>>,
    /// Outcomes not reported yet.
    outcomes: Vec<Run>,
    /// A claim that waits for messages, after one found none.
    waiting: Option<Claiming>,
    /// Tells handlers that their work is of no more use.
    over: watch::Sender<bool>,
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
            over: watch::Sender::new(false),
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
        while self.running.len() < self.worker.policy.concurrency && at_once < AT_A_STRETCH {
            let Some(next) = self.hand.next() else { break };
            if next.is_first {
                self.worker.tally.started(u64::from(next.of), next.born);
            }
            let message = Message {
                queue: self.worker.queue.clone(),
                id: next.id,
                born: next.born,
                attempts: next.attempts,
                losses: next.losses,
                body: next.body.clone(),
            };
            let context = Context::new(&message, self.over.subscribe());
            let deadline = self.worker.policy.deadline;
            let mut running = Running::new(&*self.worker.handler, next, message, context, deadline);
            match (&mut running).now_or_never() {
                Some(ran) => {
                    at_once += 1;
                    self.record(ran);
                }
                None => self.running.push(running),
            }
        }
        if at_once > 0 {
            self.pace.took(begun.elapsed() / at_once, at_once);
        }
        at_once >= AT_A_STRETCH
    }

    fn ran(&mut self, ran: Ran) {
        self.pace.took(ran.took, 1);
        self.record(ran);
        // Those that became ready meanwhile go into the same report.
        while let Some(Some(ran)) = self.running.next().now_or_never() {
            self.pace.took(ran.took, 1);
            self.record(ran);
        }
    }

    /// Notes an outcome for the next report.
    fn record(&mut self, ran: Ran) {
        let failed = ran.result.is_err();
        let outcome = match ran.result {
            Ok(done) => Outcome::Done { result: done.result, follow_ups: done.follow_ups },
            Err(failure) => self.worker.policy.after_failure(ran.message.attempts, failure, chance()),
        };
        self.worker.tally.ran(1, u64::from(failed));
        let range = Range { first: ran.message.id, len: 1 };
        self.worker.observer.ran(&self.worker.queue, range, &ran.message.body);
        match self.outcomes.last_mut() {
            Some(last)
                if last.claim_no == ran.claim_no
                    && last.range.end() == ran.message.id
                    && last.outcome == Outcome::DONE
                    && outcome == Outcome::DONE =>
            {
                last.range.len += 1;
            }
            _ => {
                let queue = self.worker.queue.clone();
                self.outcomes.push(Run { claim_no: ran.claim_no, queue, range, outcome });
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
        self.over.send_replace(true);
        let queue = self.worker.queue.clone();
        for running in std::mem::take(&mut self.running) {
            let (claim_no, id) = running.token();
            let range = Range { first: id, len: 1 };
            self.outcomes.push(Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back });
        }
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        self.over.send_replace(true);
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
