//! Waiting for all idle queues of a session at once, by its one wake-up list.
//!
//! * A queue that is rung for wakes the claim that waits for it. One that nobody waits for is passed on to another
//!   session, and remembered: whoever comes to wait for it claims first.
//! * If one claim waits alone, it goes along with the read of the list, which saves a round trip.
//! * A wait in vain is followed by a look at all queues of the session, and one that lasts is not waited for: a lost
//!   wake-up costs a second at most, also if its queue's claim goes along with a read that has just begun. After a read
//!   that failed, everybody claims anew: what was on the list may be lost, and with it their places.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    task::AbortHandle,
    time::Instant,
};

use super::{
    Session,
    claims::{Catch, Claimer, Wish},
};
use crate::{
    message::Name,
    store::{Claimed, Look, MAX_WAIT, Pass, Refusal, StoreError, Woken, ask},
};

/// How long nobody may wait before the list is read all the same, for names that have to be passed on.
const NOBODY_WAITS: Duration = Duration::from_millis(100);
/// How long nobody looks at all queues, at most: longer than a wait in vain, which is followed by a look in any case.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// How long a read that failed is not repeated.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// The lookout of a session, begun with its first wait; it ends with the last clone of the session.
pub(super) struct Lookout {
    lines: Arc<Lines>,
    task: AbortHandle,
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who waits for what.
#[derive(Default)]
struct Lines {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Name, Waiting>,
    /// Rung for while nobody waited.
    rung: BTreeSet<Name>,
    /// The queue whose claim goes along with the read under way.
    along: Option<Name>,
}

struct Waiting {
    wish: Wish,
    since: Instant,
    reply: oneshot::Sender<Heard>,
}

/// What one who waits is told.
enum Heard {
    /// There may be something: claim.
    Ring,
    /// The claim that went along with the read brought this.
    Caught(Result<Catch, StoreError>),
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a queue; false if nobody does.
    fn ring(&self, queue: &Name) -> bool {
        match self.state().waiting.remove(queue) {
            Some(waiting) => waiting.reply.send(Heard::Ring).is_ok(),
            None => false,
        }
    }

    /// Returns when somebody waits. Whoever was rung for comes back soon, and its claim is to go along with the read.
    async fn somebody_waits(&self) {
        while self.state().waiting.is_empty() {
            self.changed.notified().await;
        }
    }

    /// The only one that waits, whose claim can go along with the read.
    fn take_along(&self) -> Option<Waiting> {
        let mut state = self.state();
        if state.waiting.len() != 1 {
            return None;
        }
        let (queue, waiting) = state.waiting.pop_first()?;
        state.along = Some(queue);
        Some(waiting)
    }

    /// Whether the claim of this queue goes along with the read under way.
    fn goes_along(&self, queue: &Name) -> bool {
        self.state().along.as_ref() == Some(queue)
    }

    fn ring_all(&self) {
        for waiting in std::mem::take(&mut self.state().waiting).into_values() {
            // One that has gone away wants nothing.
            waiting.reply.send(Heard::Ring).ok();
        }
    }
}

/// A place in the line of a queue, given up when dropped.
struct Ticket<'a> {
    session: &'a Session,
    lines: Arc<Lines>,
    queue: Name,
    heard: oneshot::Receiver<Heard>,
}

impl Ticket<'_> {
    /// Waits no longer, unless its claim goes along with the read; whether it does.
    fn withdraw(&self) -> bool {
        let mut state = self.lines.state();
        state.waiting.remove(&self.queue);
        state.along.as_ref() == Some(&self.queue)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.withdraw() {
            // What its claim may catch goes back; that should not take a second.
            let caller = self.session.claimer.caller.clone();
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { caller.store().poke(caller.id()).await });
            }
        }
    }
}

/// Claims as soon as the queue is rung for, and when the next message is due.
pub(super) async fn claim_when_ready(
    session: &Session, wish: Wish, due: Option<Duration>,
) -> Result<Catch, StoreError> {
    if let Some(mut ticket) = line_up(session, &wish) {
        let due = async {
            match due {
                Some(due) => tokio::time::sleep(due).await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            biased;
            heard = &mut ticket.heard => heard,
            error = session.claimer.caller.ended() => return Err(error),
            () = due => if ticket.withdraw() {
                session.claimer.caller.store().poke(session.id()).await.ok();
                (&mut ticket.heard).await
            } else {
                Ok(Heard::Ring)
            },
        };
        if let Ok(Heard::Caught(catch)) = heard {
            return catch;
        }
    }
    super::claims::claim(session, wish).await
}

/// A place in the line of a queue; none if it has been rung for.
fn line_up<'a>(session: &'a Session, wish: &Wish) -> Option<Ticket<'a>> {
    let lookout = session.lookout.get_or_init(|| {
        let lines = Arc::<Lines>::default();
        let task = tokio::spawn(run(session.claimer.clone(), lines.clone())).abort_handle();
        Lookout { lines, task }
    });
    let (reply, heard) = oneshot::channel();
    {
        let mut state = lookout.lines.state();
        if state.rung.remove(&wish.queue) {
            return None;
        }
        state.waiting.insert(wish.queue.clone(), Waiting { wish: wish.clone(), since: Instant::now(), reply });
    }
    lookout.lines.changed.notify_one();
    Some(Ticket { session, lines: lookout.lines.clone(), queue: wish.queue.clone(), heard })
}

async fn run(claimer: Claimer, lines: Arc<Lines>) {
    tokio::select! {
        biased;
        _ = claimer.caller.ended() => {}
        () = watch(&claimer, &lines) => {}
    }
}

async fn watch(claimer: &Claimer, lines: &Arc<Lines>) {
    let mut looked = Instant::now();
    loop {
        tokio::time::timeout(NOBODY_WAITS, lines.somebody_waits()).await.ok();
        let along = lines.take_along().map(|waiting| (claimer.numbers.next(&waiting.wish.queue), waiting));
        // What came for it while it stood in line is looked for, as for all who do: its wake-up may be lost.
        let stood = along.as_ref().is_some_and(|(_, waiting)| waiting.since.elapsed() >= NOBODY_WAITS);
        let request = along.as_ref().map(|(claim_no, waiting)| claimer.request(&waiting.wish, *claim_no));
        let waiting = claimer.caller.store().wait(claimer.caller.id(), request);
        tokio::pin!(waiting);
        let woken = loop {
            tokio::select! {
                biased;
                woken = &mut waiting => break woken,
                // Others kept waking it, and this wait may last: those who wait for a lost wake-up do not.
                () = tokio::time::sleep_until(looked + LOOK_EVERY) => {
                    looked = Instant::now();
                    if stood || !lines.state().waiting.is_empty() {
                        look(claimer, lines).await;
                    }
                }
            }
        };
        lines.state().along = None;
        match woken {
            Ok(Woken { queues, claimed }) => {
                let in_vain = queues.is_empty() && along.is_none();
                let of_claim = along.as_ref().map(|(_, waiting)| waiting.wish.queue.clone());
                if let Some((claim_no, waiting)) = along {
                    answer(claimer, claim_no, waiting, claimed).await;
                }
                for queue in queues.into_iter().filter(|queue| Some(queue) != of_claim.as_ref()) {
                    if !lines.ring(&queue) {
                        lines.state().rung.insert(queue.clone());
                        pass(claimer, lines, queue);
                    }
                }
                if in_vain {
                    looked = Instant::now();
                    look(claimer, lines).await;
                }
            }
            Err(error) => {
                if let Some((claim_no, waiting)) = along {
                    answer(claimer, claim_no, waiting, Some(Err(error))).await;
                }
                lines.ring_all();
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
    }
}

/// Tells one who waits what its claim brought. One that was not answered is repeated, which nobody else waits for.
async fn answer(claimer: &Claimer, claim_no: u64, waiting: Waiting, claimed: Option<Result<Claimed, StoreError>>) {
    let Waiting { wish, reply, .. } = waiting;
    let answered = matches!(claimed, Some(Ok(_)));
    let claimer = claimer.clone();
    let tell = async move {
        let caught = claimer.claim(wish, claim_no, claimed).await;
        // What nobody waits for any more goes back.
        reply.send(Heard::Caught(caught)).ok();
    };
    if answered {
        tell.await;
    } else {
        tokio::spawn(tell);
    }
}

/// Hands a wake-up that nobody here has use for to another session. With it the session gives up its place among those
/// who wait for the queue, also one that a claim has taken since: whoever waits, or comes to wait, claims anew.
fn pass(claimer: &Claimer, lines: &Arc<Lines>, queue: Name) {
    let (caller, lines) = (claimer.caller.clone(), lines.clone());
    tokio::spawn(async move {
        // If it is lost, others look within a second.
        ask(caller.store(), Pass { session: caller.id(), queue: queue.clone() }).await.ok();
        if !lines.ring(&queue) {
            lines.state().rung.insert(queue);
        }
    });
}

/// Wakes those whose queues have something, now or when it is due.
async fn look(claimer: &Claimer, lines: &Arc<Lines>) {
    match ask(claimer.caller.store(), Look { session: claimer.caller.id() }).await {
        Ok(looked) => {
            for (queue, ms) in looked.queues {
                let due = Duration::from_millis(ms);
                if due.is_zero() {
                    rouse(claimer, lines, &queue).await;
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
    if !lines.ring(queue) && lines.goes_along(queue) {
        // If it is lost, the read ends by itself within a second.
        claimer.caller.store().poke(claimer.caller.id()).await.ok();
    }
}
