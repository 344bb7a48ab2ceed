//! Waiting for all idle queues of a session at once, by its one wake-up list.
//!
//! * A claim that waits keeps a number. When a wake-up for its queue comes, the store carries it out with the read of the list.
//!   A queue whose claim was not carried out wakes it, and it claims by itself under the same number. So whatever the
//!   store holds under the number reaches it once, in whichever way it comes first.
//! * A queue that nobody waits for is passed on to another session, and remembered: whoever comes to wait for it claims
//!   first.
//! * A wait in vain is followed by a look at all queues of the session, and one that lasts is not waited for: a lost
//!   wake-up costs a second at most. After a read that failed, everybody claims anew: what was on the list may be lost,
//!   and with it their places.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::Instant,
};

use super::{
    Session,
    claims::{ClaimReply, ClaimSize, Claimer},
    vital::unless_it_panics,
};
use crate::{
    message::{Name, SessionId},
    store::{Claim, Claimed, Look, MAX_WAIT, Pass, Refusal, Rest, StoreError, Waiting, Woken, ask},
};

/// How long nobody may wait before the list is read all the same, for names that have to be passed on.
const NOBODY_WAITS: Duration = Duration::from_millis(100);
/// How long the next read waits for those who have just been served: their claims are to go along with it.
const BACK_SOON: Duration = Duration::from_millis(1);
/// How long nobody looks at all queues, at most: longer than a wait in vain, which is followed by a look in any case.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// How long a read that failed is not repeated: longer each time, up to that of a wait.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);

/// The listener of a session, begun with its first wait; it ends with the last clone of the session.
pub(super) struct WakeListener {
    lines: Arc<Lines>,
    _task: JoinSet<()>,
}

impl WakeListener {
    /// Wakes the claim that waits for a queue under this number.
    pub(super) fn wake_under(&self, queue: &Name, claim_no: u64) {
        if let Some(claim) = self.lines.take_under(queue, claim_no) {
            claim.wake();
        }
    }
}

/// Who waits for what.
struct Lines {
    session: SessionId,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Name, WaitingClaim>,
    /// Queues whose wake-up came while no claim waited.
    woken: BTreeSet<Name>,
}

/// A claim that waits.
struct WaitingClaim {
    size: ClaimSize,
    claim_no: u64,
    /// Whether the store may know of it.
    handed_in: bool,
    reply: oneshot::Sender<Heard>,
}

impl WaitingClaim {
    /// Wakes the claim; false if it has gone away.
    fn wake(self) -> bool {
        self.reply.send(Heard::WakeUp).is_ok()
    }
}

/// What one who waits is told.
enum Heard {
    /// There may be something: claim under the number that was kept.
    WakeUp,
    /// The claim was carried out.
    Claimed(ClaimReply),
}

impl Lines {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits for a queue; false if nobody does.
    fn wake(&self, queue: &Name) -> bool {
        let claim = self.state().waiting.remove(queue);
        claim.is_some_and(WaitingClaim::wake)
    }

    /// The same, remembered if nobody does.
    fn wake_or_note(&self, queue: Name) {
        if !self.wake(&queue) {
            self.state().woken.insert(queue);
        }
    }

    fn wake_all(&self) {
        for claim in std::mem::take(&mut self.state().waiting).into_values() {
            // One that has gone away wants nothing.
            claim.wake();
        }
    }

    /// Takes the claim that waits for a queue under this number.
    fn take_under(&self, queue: &Name, claim_no: u64) -> Option<WaitingClaim> {
        let mut state = self.state();
        let is_under = state.waiting.get(queue).is_some_and(|claim| claim.claim_no == claim_no);
        if is_under { state.waiting.remove(queue) } else { None }
    }

    /// Returns when somebody waits.
    async fn somebody_waits(&self) {
        while self.state().waiting.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Returns when claims wait for all of these queues.
    async fn all_wait(&self, queues: &[Name]) {
        while !queues.iter().all(|queue| self.state().waiting.contains_key(queue)) {
            self.changed.notified().await;
        }
    }
}

impl Waiting for Lines {
    fn claim(&self, queue: &Name) -> Option<Claim> {
        self.state().waiting.get(queue).map(|claim| claim.size.under(self.session, claim.claim_no))
    }

    fn newcomers(&self) -> Vec<Claim> {
        let hand_in = |claim: &mut WaitingClaim| {
            let is_new = !std::mem::replace(&mut claim.handed_in, true);
            is_new.then(|| claim.size.under(self.session, claim.claim_no))
        };
        self.state().waiting.values_mut().filter_map(hand_in).collect()
    }
}

/// A place in the line of a queue, given up when dropped.
struct Ticket<'a> {
    claimer: &'a Claimer,
    lines: Arc<Lines>,
    queue: Name,
    claim_no: u64,
    heard: oneshot::Receiver<Heard>,
}

impl Ticket<'_> {
    /// Waits no longer; false if it has been told something.
    fn withdraw(&self) -> bool {
        self.lines.take_under(&self.queue, self.claim_no).is_some()
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.withdraw() {
            self.claimer.numbers.give_back(&self.queue, self.claim_no);
        } else if let Ok(Heard::WakeUp) = self.heard.try_recv() {
            self.claimer.numbers.give_back(&self.queue, self.claim_no);
            if tokio::runtime::Handle::try_current().is_ok() {
                pass(self.claimer, &self.lines, self.queue.clone());
            }
        }
    }
}

/// Claims as soon as a wake-up for the queue comes, and when the next message is due.
pub(super) async fn claim_when_ready(
    session: &Session, size: ClaimSize, due: Option<Duration>,
) -> Result<ClaimReply, StoreError> {
    let Some(mut ticket) = line_up(session, &size) else { return super::claims::claim(session, size).await };
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
        () = due => if ticket.withdraw() { Ok(Heard::WakeUp) } else { (&mut ticket.heard).await },
    };
    match heard {
        Ok(Heard::Claimed(reply)) => Ok(reply),
        Ok(Heard::WakeUp) => super::claims::claim_under(session, size, ticket.claim_no).await,
        // The listener is gone, and the session with it: the claim says so.
        Err(_) => super::claims::claim(session, size).await,
    }
}

/// A place in the line of a queue; none if its wake-up has come.
fn line_up<'a>(session: &'a Session, size: &ClaimSize) -> Option<Ticket<'a>> {
    let claimer = &session.claimer;
    let listener = session.listener.get_or_init(|| {
        let lines = Lines { session: session.id(), state: Mutex::default(), changed: Notify::new() };
        let lines = Arc::new(lines);
        let (claimer, watched) = (claimer.clone(), lines.clone());
        // It is dropped with the last clone of the session, whose reports may still be on their way.
        let task = async move { unless_it_panics(&claimer.caller, run(&claimer, &watched)).await };
        let task = JoinSet::from_iter([task]);
        WakeListener { lines, _task: task }
    });
    let (reply, heard) = oneshot::channel();
    let claim_no = {
        let mut state = listener.lines.state();
        if state.woken.remove(&size.queue) {
            return None;
        }
        let claim_no = claimer.numbers.next(&size.queue);
        state
            .waiting
            .insert(size.queue.clone(), WaitingClaim { size: size.clone(), claim_no, handed_in: false, reply });
        claim_no
    };
    listener.lines.changed.notify_one();
    Some(Ticket { claimer, lines: listener.lines.clone(), queue: size.queue.clone(), claim_no, heard })
}

async fn run(claimer: &Claimer, lines: &Arc<Lines>) {
    tokio::select! {
        biased;
        _ = claimer.caller.ended() => {}
        () = watch(claimer, lines) => {}
    }
}

async fn watch(claimer: &Claimer, lines: &Arc<Lines>) {
    let mut looked = Instant::now();
    let mut pause = AFTER_A_FAILURE;
    loop {
        tokio::time::timeout(NOBODY_WAITS, lines.somebody_waits()).await.ok();
        let waiting = claimer.caller.store().wait(claimer.caller.id(), lines.clone());
        tokio::pin!(waiting);
        let woken = loop {
            tokio::select! {
                biased;
                woken = &mut waiting => break woken,
                // Others kept waking it, and this wait may last: those who wait for a lost wake-up do not.
                () = tokio::time::sleep_until(looked + LOOK_EVERY) => {
                    looked = Instant::now();
                    if !lines.state().waiting.is_empty() {
                        look(claimer, lines).await;
                    }
                }
            }
        };
        match woken {
            Ok(woken) if woken == Woken::default() => {
                looked = Instant::now();
                look(claimer, lines).await;
            }
            Ok(Woken { queues, claimed, .. }) => {
                for queue in queues {
                    if !lines.wake(&queue) {
                        lines.state().woken.insert(queue.clone());
                        pass(claimer, lines, queue);
                    }
                }
                let served: Vec<Name> =
                    claimed.into_iter().filter_map(|(no, claimed)| hand_over(claimer, lines, no, claimed)).collect();
                tokio::time::timeout(BACK_SOON, lines.all_wait(&served)).await.ok();
            }
            Err(error @ StoreError::Refused(Refusal::Stale)) => claimer.caller.end(error),
            Err(_) => {
                // Those that it has called claim now; if it goes on like this, a look tells who is to.
                if pause == AFTER_A_FAILURE {
                    lines.wake_all();
                } else {
                    lines.state().waiting.values_mut().for_each(|waiting| waiting.handed_in = false);
                    look(claimer, lines).await;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_WAIT);
                continue;
            }
        }
        pause = AFTER_A_FAILURE;
    }
}

/// Gives what a claim brought to whoever waits under its number; the queue, if that one is about to wait again. If nobody
/// does, a number that is free says that it went away: the messages go back. Otherwise it claims by itself, and is
/// answered with them if it has not been.
fn hand_over(claimer: &Claimer, lines: &Lines, claim_no: u64, claimed: Claimed) -> Option<Name> {
    let queue = claimed.queue.clone();
    let has_room = claimed.rest != Rest::More;
    if let Some(claim) = lines.take_under(&queue, claim_no) {
        // What nobody waits for any more goes back.
        let heard = claim.reply.send(Heard::Claimed(claimer.reply(claim_no, claimed))).is_ok();
        return (heard && has_room).then_some(queue);
    }
    if claimer.numbers.take(&queue, claim_no) {
        drop(claimer.reply(claim_no, claimed));
    } else {
        lines.wake_or_note(queue);
    }
    None
}

/// Hands a wake-up that nobody here has use for to another session. With it the session gives up its place among those
/// who wait for the queue, also one that a claim has taken since: whoever waits, or comes to wait, claims anew.
fn pass(claimer: &Claimer, lines: &Arc<Lines>, queue: Name) {
    let (caller, lines) = (claimer.caller.clone(), lines.clone());
    tokio::spawn(async move {
        // If it is lost, others look within a second.
        ask(caller.store(), Pass { session: caller.id(), queue: queue.clone() }).await.ok();
        lines.wake_or_note(queue);
    });
}

/// Wakes those whose queues have something, now or when it is due.
async fn look(claimer: &Claimer, lines: &Arc<Lines>) {
    match ask(claimer.caller.store(), Look { session: claimer.caller.id() }).await {
        Ok(looked) => {
            for (queue, ms) in looked.queues {
                let due = Duration::from_millis(ms);
                if due.is_zero() {
                    lines.wake(&queue);
                } else if due <= MAX_WAIT {
                    let lines = lines.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(due).await;
                        lines.wake(&queue);
                    });
                }
            }
        }
        Err(error @ StoreError::Refused(Refusal::Stale)) => claimer.caller.end(error),
        Err(_) => tokio::time::sleep(AFTER_A_FAILURE).await,
    }
}
