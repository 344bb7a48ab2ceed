//! The dispatcher of a queue: brings messages from the store to the executor, and outcomes back.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesOrdered};
use tokio::time::Instant;

use super::{executor::Executor, outbox, unplaced::Unplaced};
use crate::{
    fleet::{BoxFuture, Shutdown, event::Event, observer::tell},
    message::{Name, Outcome},
    store::{
        Rest, Stop, StoreError,
        notice::Notice,
        session::{ClaimReply, Reported, Session},
    },
};

/// Claims under way at once.
const CLAIMS_UNDER_WAY: usize = 4;
/// The most body bytes asked for in one claim.
const CLAIM_BYTES: u64 = 4 << 20;
/// How long a drain waits for room for what handlers have left.
const PATIENCE_FOR_ROOM: Duration = Duration::from_secs(1);
/// How often a runtime that shows no sign of life is looked at.
const LOOK_FOR_LIFE: Duration = Duration::from_millis(200);

/// See the module. Dropped, it closes the executor.
pub(in crate::fleet) struct Dispatcher {
    session: Session,
    executor: Arc<Executor>,
    /// Those under way, answered in the order they were made: one with long parcels takes longer than the next.
    claims: FuturesOrdered<Claiming>,
    /// The report under way, and of how many messages that were begun.
    settling: Option<Settling>,
    /// What earlier reports had no room for.
    unplaced: Unplaced,
    /// A claim that waits for messages, after one found none.
    waiting: Option<Claiming>,
}

type Settling = (u64, BoxFuture<'static, Result<Reported, StoreError>>);

/// A claim under way.
struct Claiming {
    /// How many messages it asks for.
    n: u32,
    caught: BoxFuture<'static, Result<ClaimReply, StoreError>>,
}

impl Future for Claiming {
    type Output = (u32, Result<ClaimReply, StoreError>);

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.caught.as_mut().poll(context).map(|caught| (self.n, caught))
    }
}

impl Dispatcher {
    pub(in crate::fleet) fn new(session: Session, executor: Arc<Executor>) -> Self {
        let (claims, unplaced) = (FuturesOrdered::new(), Unplaced::default());
        Self { session, executor, claims, settling: None, unplaced, waiting: None }
    }

    /// Works until it is asked to stop, with everything settled or handed back, or until the session is over; then it tells
    /// what was begun for nothing. It claims nothing while its queue is among those `closed`, which are left to others.
    ///
    /// # Errors
    /// The store's failure if repeating cannot help.
    pub(in crate::fleet) async fn run(
        mut self, closed: Arc<Notice<BTreeSet<Name>>>, shutdown: Shutdown,
    ) -> Result<(), StoreError> {
        let session = self.session.clone();
        tokio::select! {
            biased;
            () = session.over() => {}
            ended = self.work(closed, shutdown) => return ended,
        }
        self.lose().await;
        Ok(())
    }

    /// Tells the store and the observer of messages that were begun here and are others' now.
    async fn lose(mut self) {
        let mut begun = self.executor.lose();
        begun.extend(std::mem::take(&mut self.unplaced).into_runs());
        let mut messages: u64 = begun.iter().map(|run| u64::from(run.range.len)).sum();
        if let Some((reporting, settling)) = self.settling.take()
            && settling.await.is_err()
        {
            // Whoever made that report has told the store.
            messages += reporting;
        }
        if messages > 0 {
            let queue = self.executor.queue().clone();
            tell(&*self.executor.observer, &Event::RunsLost { queue, messages });
            self.session.report_late(begun).await;
        }
    }

    async fn work(&mut self, closed: Arc<Notice<BTreeSet<Name>>>, shutdown: Shutdown) -> Result<(), StoreError> {
        let executor = Arc::clone(&self.executor);
        loop {
            let stop = shutdown.asked();
            let is_closed = closed.get().contains(executor.queue());
            // A claim would keep the session, and with it what a runtime that stands still has begun.
            let awake = self.session.heart().shows_life();
            let open = !is_closed && awake && stop.is_none() && !self.unplaced.is_crowded();
            if stop == Some(Stop::Now) {
                executor.stop();
            }
            if !open {
                self.hand_back();
            }
            let look_again = self.look();
            self.reconsider();
            let look_again = look_again.or_else(|| (!awake).then(|| Instant::now() + LOOK_FOR_LIFE));
            executor.start_slots();
            self.report(stop);
            let look_again = look_again.into_iter().chain(self.unplaced.look_at()).min();
            if open {
                self.claim();
            } else if stop.is_some() && self.is_done() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some((n, caught)) = self.claims.next() => self.caught(n, caught?),
                reported = reported(&mut self.settling) => self.settled(reported?),
                (n, caught) = woken(&mut self.waiting) => {
                    self.waiting = None;
                    self.caught(n, caught?);
                }
                () = executor.permits.called() => {}
                _ = closed.until(|closed| closed.contains(executor.queue()) != is_closed) => {}
                () = shutdown.any(), if stop.is_none() => {}
                () = shutdown.at_once(), if stop == Some(Stop::Graceful) => {}
                () = tokio::time::sleep_until(look_again.unwrap_or_else(Instant::now)), if look_again.is_some() => {}
            }
        }
    }

    /// Whether nothing is left that has to be ended in good order.
    fn is_done(&self) -> bool {
        self.executor.buffer().is_clear()
            && self.claims.is_empty()
            && self.settling.is_none()
            && self.unplaced.is_empty()
    }

    /// Looks after what depends on time; when to do so again.
    fn look(&self) -> Option<Instant> {
        let mut buffer = self.executor.buffer();
        let permits = self.executor.permits_open(&buffer);
        buffer.look(Instant::now(), permits)
    }

    /// Gives up a claim that waits for more than there are free permits, once messages have waited for one in vain: it was
    /// made when things went faster.
    fn reconsider(&mut self) {
        let mut buffer = self.executor.buffer();
        let permits = self.executor.permits_open(&buffer);
        let too_much = |waiting: &mut Claiming| {
            buffer.pace.has_overstayed() && waiting.n as usize > permits.saturating_sub(buffer.have())
        };
        if let Some(waiting) = self.waiting.take_if(too_much) {
            buffer.pace.answered(waiting.n);
        }
    }

    /// Reports what there is, unless a report is under way.
    fn report(&mut self, stop: Option<Stop>) {
        if self.settling.is_some() {
            return;
        }
        let patience = stop.map(|how| if how == Stop::Graceful { PATIENCE_FOR_ROOM } else { Duration::ZERO });
        let now = Instant::now();
        let mut runs = self.executor.buffer().report(now, stop.is_some());
        runs.extend(self.unplaced.take(now, patience));
        if !runs.is_empty() {
            self.executor.buffer().reports();
            self.executor.observer.settling();
            let runs =
                if outbox::has_failures(&runs) && self.executor.is_going() { outbox::unfailed(runs) } else { runs };
            let (session, runs) = (self.session.clone(), outbox::in_order(runs));
            let begun = runs.iter().filter(|run| run.outcome != Outcome::Back);
            let begun = begun.map(|run| u64::from(run.range.len)).sum();
            self.settling = Some((begun, Box::pin(async move { session.settle(runs).await })));
        }
    }

    fn settled(&mut self, reported: Reported) {
        let Reported { refused, unplaced } = reported;
        self.settling = None;
        self.executor.buffer().reported();
        let messages = unplaced.iter().map(|run| u64::from(run.range.len)).sum();
        if self.unplaced.note(unplaced, Instant::now()) {
            tell(&*self.executor.observer, &Event::NoRoom { queue: self.executor.queue().clone(), messages });
        }
        if !refused.is_empty() {
            let messages = refused.iter().map(|(_, _, range)| u64::from(range.len)).sum();
            let (queue, runs) = (self.executor.queue().clone(), refused.len());
            tell(&*self.executor.observer, &Event::RunsRefused { queue, runs, messages });
        }
    }

    /// Claims what is wanted, and has itself called when more is.
    fn claim(&mut self) {
        while self.claims.len() < CLAIMS_UNDER_WAY && self.waiting.is_none() {
            let Some(claiming) = self.claiming(None) else { break };
            self.claims.push_back(claiming);
        }
        let may_claim = self.claims.len() < CLAIMS_UNDER_WAY && self.waiting.is_none();
        let mut buffer = self.executor.buffer();
        let permits = self.executor.permits_open(&buffer);
        let least = may_claim.then(|| buffer.pace.claim_at(permits, self.claims.len())).flatten();
        buffer.call_at(least);
    }

    /// A claim of as much as is wanted now, which waits for messages for a while if told so.
    fn claiming(&mut self, wait: Option<Option<Duration>>) -> Option<Claiming> {
        let n = {
            let mut buffer = self.executor.buffer();
            let permits = self.executor.permits_open(&buffer);
            let n = buffer.wanted(permits, self.claims.len())?;
            buffer.pace.asked(n);
            n
        };
        let (session, queue) = (self.session.clone(), self.executor.queue().clone());
        let caught = Box::pin(async move {
            match wait {
                Some(due) => session.claim_when_ready(queue, n, CLAIM_BYTES, due).await,
                None => session.claim(queue, n, CLAIM_BYTES).await,
            }
        });
        Some(Claiming { n, caught })
    }

    fn caught(&mut self, n: u32, reply: ClaimReply) {
        let mut buffer = self.executor.buffer();
        buffer.pace.answered(n);
        if let Some(held) = reply.held {
            let (claim_no, _, spans) = held.into_parts();
            buffer.add(claim_no, spans, Instant::now());
        }
        drop(buffer);
        if let (Rest::Nothing { next_due_ms }, None) = (reply.rest, &self.waiting) {
            let due = next_due_ms.map(|ms| Duration::from_millis(ms.max(1)));
            self.waiting = self.claiming(Some(due));
        }
    }

    /// Hands back what has not been begun. What a waiting claim may still reply goes back by itself.
    fn hand_back(&mut self) {
        let mut buffer = self.executor.buffer();
        buffer.hand_back(None);
        buffer.call_at(None);
        if let Some(waiting) = self.waiting.take() {
            buffer.pace.answered(waiting.n);
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.executor.close();
    }
}

async fn reported(settling: &mut Option<Settling>) -> Result<Reported, StoreError> {
    match settling {
        Some((_, settling)) => settling.await,
        None => std::future::pending().await,
    }
}

async fn woken(waiting: &mut Option<Claiming>) -> (u32, Result<ClaimReply, StoreError>) {
    match waiting {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
}
