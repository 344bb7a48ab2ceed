//! The worker of one queue: claims ahead, runs handlers, reports what they came to.
//!
//! * At most [`QueuePolicy::concurrency`] handlers run at once. What is claimed beyond that follows the measured time
//!   of a handler, so that slow work is spread over the fleet and fast work never waits for a round trip.
//! * A handler that is ready at once is completed on the spot, without a task and without a trip through the scheduler.
//! * Outcomes are reported as they come; what comes while a report is under way goes into the next.
//! * While its gate is closed it claims nothing and hands back what it has not begun.
//! * When the session is over, everything is dropped at once: others have the messages.

mod desk;
mod hand;
mod pace;
mod running;
mod trial;

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};

pub(super) use self::desk::Desk;
pub use self::trial::trial;
use super::{BoxFuture, Cancel};
use crate::{
    message::Name,
    store::{
        Rest, Settled, Stop, StoreError,
        notice::Notice,
        session::{Catch, Session},
    },
};

/// Claims under way at once.
const CLAIMS_UNDER_WAY: usize = 4;
/// The most body bytes asked for in one claim.
const CLAIM_BYTES: u64 = 4 << 20;

/// What a worker is made of.
pub(super) struct Worker {
    pub(super) session: Session,
    pub(super) desk: Desk,
    /// The queues that are left to others.
    pub(super) closed: Arc<Notice<BTreeSet<Name>>>,
    pub(super) cancel: Cancel,
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
    session: Session,
    desk: Desk,
    claims: FuturesUnordered<Claiming>,
    /// The report under way.
    settling: Option<BoxFuture<'static, Result<Settled, StoreError>>>,
    /// A claim that waits for messages, after one found none.
    waiting: Option<Claiming>,
}

impl Worker {
    /// Works until it is asked to stop, with everything settled or handed back, or until the session is over.
    ///
    /// # Errors
    /// The store's failure if repeating cannot help.
    pub(super) async fn run(self) -> Result<(), StoreError> {
        let Self { session, desk, closed, cancel } = self;
        let shift =
            Shift { session: session.clone(), desk, claims: FuturesUnordered::new(), settling: None, waiting: None };
        tokio::select! {
            biased;
            () = session.over() => Ok(()),
            ended = shift.work(closed, cancel) => ended,
        }
    }
}

impl Shift {
    async fn work(mut self, closed: Arc<Notice<BTreeSet<Name>>>, cancel: Cancel) -> Result<(), StoreError> {
        let queue = self.desk.queue().clone();
        loop {
            let stop = cancel.asked();
            let is_closed = closed.get().contains(&queue);
            let open = !is_closed && stop.is_none();
            if !open {
                self.hand_back();
            }
            if stop == Some(Stop::Now) {
                self.desk.drop_running();
            }
            let more = self.desk.start();
            self.report();
            if open {
                self.claim();
            } else if stop.is_some() && self.is_done() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(ran) = self.desk.running.next() => self.desk.ran(ran),
                Some((n, caught)) = self.claims.next() => self.caught(n, caught?),
                settled = settled(&mut self.settling) => self.settled(settled?),
                (n, caught) = woken(&mut self.waiting) => {
                    self.waiting = None;
                    self.caught(n, caught?);
                }
                _ = closed.until(|closed| closed.contains(&queue) != is_closed) => {}
                () = cancel.any(), if stop.is_none() => {}
                () = cancel.at_once(), if stop == Some(Stop::Drain) => {}
                () = std::future::ready(()), if more => tokio::task::yield_now().await,
            }
        }
    }

    /// Whether nothing is left that has to be ended in good order.
    fn is_done(&self) -> bool {
        self.desk.is_clear() && self.claims.is_empty() && self.settling.is_none()
    }

    /// Reports what there is, unless a report is under way.
    fn report(&mut self) {
        if self.settling.is_none() && !self.desk.outcomes.is_empty() {
            self.desk.observer.settling();
            let (session, runs) = (self.session.clone(), std::mem::take(&mut self.desk.outcomes));
            self.settling = Some(Box::pin(async move { session.settle(runs).await }));
        }
    }

    fn settled(&mut self, settled: Settled) {
        self.settling = None;
        if !settled.refused.is_empty() {
            self.desk.observer.told(&format!("{} run(s) were refused: others have them", settled.refused.len()));
        }
    }

    fn claim(&mut self) {
        while self.claims.len() < CLAIMS_UNDER_WAY && self.waiting.is_none() {
            let Some(claiming) = self.claiming(None) else { return };
            self.claims.push(claiming);
        }
    }

    /// A claim of as much as is wanted now, which waits for messages for a while if told so.
    fn claiming(&mut self, wait: Option<Option<Duration>>) -> Option<Claiming> {
        let n = self.desk.wanted(self.claims.len())?;
        self.desk.pace.asked(n);
        let (session, queue) = (self.session.clone(), self.desk.queue().clone());
        let caught = Box::pin(async move {
            match wait {
                Some(due) => session.claim_when_ready(queue, n, CLAIM_BYTES, due).await,
                None => session.claim(queue, n, CLAIM_BYTES).await,
            }
        });
        Some(Claiming { n, caught })
    }

    fn caught(&mut self, n: u32, catch: Catch) {
        self.desk.pace.answered(n);
        if let Some(held) = catch.held {
            let (claim_no, _, pieces) = held.into_parts();
            self.desk.hand.add(claim_no, pieces);
        }
        if let (Rest::Nothing { next_due_ms }, None) = (catch.rest, &self.waiting) {
            let due = next_due_ms.map(|ms| Duration::from_millis(ms.max(1)));
            self.waiting = self.claiming(Some(due));
        }
    }

    /// Hands back what has not been begun. What a waiting claim may still catch goes back by itself.
    fn hand_back(&mut self) {
        self.desk.hand_back();
        if let Some(waiting) = self.waiting.take() {
            self.desk.pace.answered(waiting.n);
        }
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
