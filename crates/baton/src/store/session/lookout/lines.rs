//! Who waits for which queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::Deliver;
use crate::{
    message::Name,
    store::{
        Rest, StoreError,
        session::claims::{Catch, ClaimNumbers, Wish},
    },
};

/// How long the answer to a claim may lie unread after a beat has told of it.
const UNREAD: Duration = Duration::from_millis(100);

/// Everybody who waits.
#[derive(Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Name, Waiting>,
    /// Rung for while nobody waited.
    rung: BTreeSet<Name>,
    under_way: Option<UnderWay>,
}

/// The claim that the lookout makes at the moment.
struct UnderWay {
    queue: Name,
    claim_no: u64,
    /// When a beat first told of messages held under it.
    told: Option<Instant>,
    /// Whether they have been handed back, since the answer was not read.
    given_up: bool,
}

/// One who waits.
pub(super) struct Waiting {
    pub(super) wish: Wish,
    pub(super) since: Instant,
    pub(super) taker: Taker,
    pub(super) reply: oneshot::Sender<Heard>,
}

/// What one who waits is told.
pub(super) enum Heard {
    /// There may be something: claim.
    Ring,
    /// A claim was made; what it brought has been delivered.
    Caught(Result<Rest, StoreError>),
}

/// Who takes what is claimed; clones share it, and it is used once.
#[derive(Clone)]
pub(super) struct Taker(Arc<Mutex<Option<Deliver>>>);

impl Taker {
    pub(super) fn new(deliver: Deliver) -> Self {
        Self(Arc::new(Mutex::new(Some(deliver))))
    }

    pub(super) fn take(&self) -> Option<Deliver> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Delivers; what nobody wants any more goes back.
    pub(super) fn give(&self, catch: Catch) {
        if let Some(deliver) = self.take() {
            deliver(catch);
        }
    }
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets somebody wait, unless the queue has been rung for.
    pub(super) fn line_up(&self, waiting: Waiting) -> bool {
        {
            let mut state = self.state();
            if state.rung.remove(&waiting.wish.queue) {
                return false;
            }
            state.waiting.insert(waiting.wish.queue.clone(), waiting);
        }
        self.changed.notify_one();
        true
    }

    /// Lets nobody wait for a queue any longer; whether a claim of it is under way all the same.
    pub(super) fn withdraw(&self, queue: &Name) -> bool {
        self.state().waiting.remove(queue);
        self.claims_from(queue)
    }

    /// Whether a claim of this queue is under way.
    pub(super) fn claims_from(&self, queue: &Name) -> bool {
        self.state().under_way.as_ref().is_some_and(|claim| claim.queue == *queue)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().waiting.is_empty()
    }

    /// Returns when somebody waits. Whoever was rung for comes back soon, and its claim is to go along with the read.
    pub(super) async fn somebody_waits(&self) {
        while self.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Returns when somebody comes to wait.
    pub(super) async fn somebody_comes(&self) {
        self.changed.notified().await;
    }

    /// Wakes whoever waits for a queue; false if nobody does.
    pub(super) fn ring(&self, queue: &Name) -> bool {
        match self.state().waiting.remove(queue) {
            Some(waiting) => waiting.reply.send(Heard::Ring).is_ok(),
            None => false,
        }
    }

    pub(super) fn ring_all(&self) {
        for waiting in std::mem::take(&mut self.state().waiting).into_values() {
            // One that has gone away wants nothing.
            waiting.reply.send(Heard::Ring).ok();
        }
    }

    /// Remembers that a queue was rung for while nobody waited.
    pub(super) fn remember(&self, queue: Name) {
        self.state().rung.insert(queue);
    }

    /// The only one that waits, whose claim goes along with the read under the number given here.
    pub(super) fn take_only(&self, numbers: &ClaimNumbers) -> Option<(u64, Waiting)> {
        let queue = {
            let state = self.state();
            let (queue, _) = state.waiting.first_key_value().filter(|_| state.waiting.len() == 1)?;
            queue.clone()
        };
        self.take(&queue, numbers)
    }

    /// The one that waits for a queue, whose claim is made now under the number given here.
    pub(super) fn take(&self, queue: &Name, numbers: &ClaimNumbers) -> Option<(u64, Waiting)> {
        let mut state = self.state();
        let waiting = state.waiting.remove(queue)?;
        let claim_no = numbers.next(queue);
        state.under_way = Some(UnderWay { queue: queue.clone(), claim_no, told: None, given_up: false });
        Some((claim_no, waiting))
    }

    /// The claim under way was answered, or failed; whether what it brought has been handed back by others.
    pub(super) fn answered(&self) -> bool {
        self.state().under_way.take().is_some_and(|claim| claim.given_up)
    }

    /// See [`super::Lookout::has_left_unread`].
    pub(super) fn has_left_unread(&self, queue: &Name, claim_no: u64) -> bool {
        let mut state = self.state();
        let Some(claim) = &mut state.under_way else { return false };
        if claim.queue != *queue || claim.claim_no != claim_no || claim.given_up {
            return false;
        }
        let now = Instant::now();
        claim.given_up = *claim.told.get_or_insert(now) + UNREAD <= now;
        claim.given_up
    }
}
