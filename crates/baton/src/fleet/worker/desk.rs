//! The desk of a worker: messages in hand, handlers at work, outcomes to report. It knows no store.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::{sync::watch, time::Instant};

use super::{
    hand::{Hand, Next},
    pace::Pace,
    running::{Begun, Ran, Running, Starter},
};
use crate::{
    fleet::{
        handler::{self, Context, Done, Failure, Message},
        node::Worked,
        observer::Observer,
        policy::QueuePolicy,
        tally::Tally,
    },
    message::{Name, Outcome, Range, Run},
    store::session::Footing,
};

/// Messages completed on the spot before the worker looks at everything else.
const AT_A_STRETCH: u32 = 512;

/// Where the messages of one queue are worked on.
pub(in crate::fleet) struct Desk {
    /// What handlers are given of this worker.
    shift: Arc<handler::Shift>,
    policy: QueuePolicy,
    footing: Footing,
    tally: Arc<Tally>,
    starter: Starter,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) hand: Hand,
    pub(super) pace: Pace,
    pub(super) running: FuturesUnordered<Running>,
    /// Outcomes not reported yet.
    pub(super) outcomes: Vec<Run>,
}

impl Desk {
    pub(in crate::fleet) fn new(
        worked: Worked, footing: Footing, tally: Arc<Tally>, observer: Arc<dyn Observer>,
    ) -> Self {
        let Worked { queue, handler, policy } = worked;
        Self {
            shift: Arc::new(handler::Shift { queue, over: watch::Sender::new(false) }),
            footing,
            tally,
            starter: Starter::new(handler, policy.deadline),
            observer,
            hand: Hand::default(),
            pace: Pace::new(policy.concurrency),
            running: FuturesUnordered::new(),
            outcomes: Vec::new(),
            policy,
        }
    }

    pub(super) fn queue(&self) -> &Name {
        &self.shift.queue
    }

    /// Whether nothing is at work and nothing is left to report.
    pub(super) fn is_clear(&self) -> bool {
        self.running.is_empty() && self.outcomes.is_empty()
    }

    /// How many messages to claim now, if any.
    pub(super) fn wanted(&self, claims_under_way: usize) -> Option<u32> {
        self.pace.wanted(self.running.len(), self.hand.len(), claims_under_way)
    }

    /// Starts messages while there is room; whether it stopped with work left that could be started at once.
    pub(super) fn start(&mut self) -> bool {
        let begun = Instant::now();
        let mut at_once = 0;
        let mut stretch = Stretch::default();
        while self.running.len() < self.policy.concurrency && at_once < AT_A_STRETCH {
            let Some(Next { claim_no, id, born, attempts, losses, body, is_first, of }) = self.hand.next() else {
                break;
            };
            if is_first {
                self.tally.started(u64::from(of), born);
            }
            let message = Message { queue: self.queue().clone(), id, born, attempts, losses, body };
            let context = Context::new(&self.shift, &message);
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

    /// Notes what came of a handler that was at work.
    pub(super) fn ran(&mut self, ran: Ran) {
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
            self.tally.ran(u64::from(stretch.range.len), stretch.failed);
            self.observer.ran(self.queue(), stretch.range, &stretch.first_body);
        }
    }

    /// Notes an outcome for the next report.
    fn record(&mut self, claim_no: u64, id: u64, attempts: u32, result: Result<Done, Failure>) {
        if let (Ok(done), Some(last)) = (&result, self.outcomes.last_mut())
            && last.claim_no == claim_no
            && last.range.end() == id
            && matches!(&last.outcome, Outcome::Done { result: None, follow_ups } if follow_ups.is_empty())
            && matches!(done, Done { result: None, follow_ups } if follow_ups.is_empty())
        {
            last.range.len += 1;
            return;
        }
        let outcome = match result {
            Ok(done) => Outcome::Done { result: done.result, follow_ups: done.follow_ups },
            Err(failure) => self.policy.after_failure(attempts, failure, self.footing.chance()),
        };
        let (queue, range) = (self.queue().clone(), Range { first: id, len: 1 });
        self.outcomes.push(Run { claim_no, queue, range, outcome });
    }

    /// Hands back what has not been begun.
    pub(super) fn hand_back(&mut self) {
        let queue = &self.shift.queue;
        let back = |(claim_no, range)| Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back };
        self.outcomes.extend(self.hand.drain().map(back));
    }

    /// Drops handlers at work and hands their messages back.
    pub(super) fn drop_running(&mut self) {
        self.shift.over.send_replace(true);
        for Running { claim_no, id, .. } in std::mem::take(&mut self.running) {
            let (queue, range) = (self.queue().clone(), Range { first: id, len: 1 });
            self.outcomes.push(Run { claim_no, queue, range, outcome: Outcome::Back });
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shift.over.send_replace(true);
    }
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
