//! The task that reads the wake-up list.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, time::Instant};

use super::lines::{Heard, Lines, Waiting};
use crate::{
    message::Name,
    store::{
        Claimed, Look, MAX_WAIT, Pass, Refusal, StoreError, Woken, ask,
        session::{caller::Caller, claims::Claimer},
    },
};

/// How long nobody may wait before the list is read all the same, for names that have to be passed on.
const NOBODY_WAITS: Duration = Duration::from_millis(100);
/// How long one who was delivered to is given to come back before the next read.
const COMES_BACK: Duration = Duration::from_millis(1);
/// How long nobody looks at all queues, at most: longer than a wait in vain, which is followed by a look in any case.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// How long a read that failed is not repeated.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Watch {
    /// For calls from the office.
    claimer: Claimer,
    office: Handle,
    /// For calls from here.
    here: Caller,
    lines: Arc<Lines>,
}

impl Watch {
    pub(super) fn new(claimer: Claimer, office: Handle, lines: Arc<Lines>) -> Self {
        let here = claimer.caller.apart();
        Self { claimer, office, here, lines }
    }

    /// Reads until the session is over.
    pub(super) async fn run(self) {
        tokio::select! {
            biased;
            _ = self.here.ended() => {}
            () = self.watch() => {}
        }
    }

    async fn watch(&self) {
        let lines = &self.lines;
        let mut looked = Instant::now();
        loop {
            tokio::time::timeout(NOBODY_WAITS, lines.somebody_waits()).await.ok();
            let along = lines.take_only(&self.claimer.numbers);
            match self.read(along.as_ref(), &mut looked).await {
                Ok(Woken { queues, claimed }) => {
                    let in_vain = queues.is_empty() && along.is_none();
                    self.woken(queues, along, claimed).await;
                    if in_vain {
                        looked = Instant::now();
                        self.office.spawn(look(self.claimer.clone(), lines.clone())).await.ok();
                    }
                }
                Err(error) => {
                    if let Some((claim_no, waiting)) = along {
                        self.answer(claim_no, waiting, Err(error)).await;
                    }
                    lines.ring_all();
                    tokio::time::sleep(AFTER_A_FAILURE).await;
                }
            }
        }
    }

    /// Reads the list; the claim goes along.
    async fn read(&self, along: Option<&(u64, Waiting)>, looked: &mut Instant) -> Result<Woken, StoreError> {
        let request = along.map(|(claim_no, waiting)| self.claimer.request(&waiting.wish, *claim_no));
        // What came for it while it stood in line is looked for, as for all who do: its wake-up may be lost.
        let stood = along.is_some_and(|(_, waiting)| waiting.since.elapsed() >= NOBODY_WAITS);
        let waiting = self.here.store().wait(self.here.id(), request);
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                biased;
                woken = &mut waiting => return woken,
                // Others kept waking it, and this wait may last: those who wait for a lost wake-up do not.
                () = tokio::time::sleep_until(*looked + LOOK_EVERY) => {
                    *looked = Instant::now();
                    if stood || !self.lines.is_empty() {
                        self.office.spawn(look(self.claimer.clone(), self.lines.clone()));
                    }
                }
            }
        }
    }

    /// Sees to the queues that were on the list. Without a claim that went along, the first of them is claimed from here,
    /// the others from the office.
    async fn woken(
        &self, queues: Vec<Name>, along: Option<(u64, Waiting)>, claimed: Option<Result<Claimed, StoreError>>,
    ) {
        let first = || queues.first().and_then(|queue| self.lines.take(queue, &self.claimer.numbers));
        let claim = along.or_else(first);
        let of_claim = claim.as_ref().map(|(_, waiting)| waiting.wish.queue.clone());
        for queue in queues.into_iter().filter(|queue| Some(queue) != of_claim.as_ref()) {
            if !self.lines.ring(&queue) {
                self.lines.remember(queue.clone());
                self.pass(queue);
            }
        }
        let Some((claim_no, waiting)) = claim else { return };
        let claimed = match claimed {
            Some(claimed) => claimed,
            None => ask(self.here.store(), self.claimer.request(&waiting.wish, claim_no)).await,
        };
        self.answer(claim_no, waiting, claimed).await;
    }

    /// Delivers what a claim brought and tells the one who waits. One that was not answered is repeated from the office.
    async fn answer(&self, claim_no: u64, waiting: Waiting, claimed: Result<Claimed, StoreError>) {
        let Waiting { wish, taker, reply, .. } = waiting;
        if self.lines.answered() {
            // It has been handed back meanwhile. One that has gone away wants nothing.
            reply.send(Heard::Ring).ok();
            return;
        }
        let (claimer, answered) = (self.claimer.clone(), claimed.is_ok());
        let deliver = async move {
            let rest = claimer.claim(wish, claim_no, Some(claimed)).await.map(|catch| {
                let rest = catch.rest;
                taker.give(catch);
                rest
            });
            reply.send(Heard::Caught(rest)).ok();
        };
        if answered {
            deliver.await;
            // What was delivered begins meanwhile. It may block this thread, but not this task.
            tokio::time::timeout(COMES_BACK, self.lines.somebody_comes()).await.ok();
        } else {
            self.office.spawn(deliver);
        }
    }

    /// Hands a wake-up that nobody here has use for to another session. With it the session gives up its place among
    /// those who wait for the queue, also one that a claim has taken since: whoever waits, or comes to wait, claims anew.
    fn pass(&self, queue: Name) {
        let (caller, lines) = (self.claimer.caller.clone(), self.lines.clone());
        self.office.spawn(async move {
            // If it is lost, others look within a second.
            ask(caller.store(), Pass { session: caller.id(), queue: queue.clone() }).await.ok();
            if !lines.ring(&queue) {
                lines.remember(queue);
            }
        });
    }
}

/// Wakes those whose queues have something, now or when it is due.
async fn look(claimer: Claimer, lines: Arc<Lines>) {
    match ask(claimer.caller.store(), Look { session: claimer.caller.id() }).await {
        Ok(looked) => {
            for (queue, ms) in looked.queues {
                let due = Duration::from_millis(ms);
                if due.is_zero() {
                    rouse(&claimer, &lines, &queue).await;
                } else if due <= MAX_WAIT {
                    let (claimer, lines) = (claimer.clone(), lines.clone());
                    tokio::spawn(async move {
                        tokio::time::sleep(due).await;
                        rouse(&claimer, &lines, &queue).await;
                    });
                }
            }
        }
        Err(error @ StoreError::Refused(Refusal::Stale)) => claimer.caller.end(error),
        Err(_) => tokio::time::sleep(AFTER_A_FAILURE).await,
    }
}

/// Wakes whoever waits for a queue; if its claim goes along with the read, by ending that.
async fn rouse(claimer: &Claimer, lines: &Lines, queue: &Name) {
    if !lines.ring(queue) && lines.claims_from(queue) {
        // If it is lost, the read ends by itself within a second.
        claimer.caller.store().poke(claimer.caller.id()).await.ok();
    }
}
