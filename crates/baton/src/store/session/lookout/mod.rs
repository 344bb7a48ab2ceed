//! Waiting for all idle queues of a session at once, by its one wake-up list.
//!
//! * A queue that is rung for wakes the claim that waits for it. One that nobody waits for is passed on to another
//!   session, and remembered: whoever comes to wait for it claims first.
//! * If one claim waits alone, it goes along with the read of the list, which saves a round trip.
//! * The list is read, and what is claimed on the way is delivered, in the runtime where the work is done: a message is
//!   begun by the very thread that hears of it. If something blocks that runtime, what was claimed and lies unread is
//!   handed back from the office as beats tell of it.
//! * A wait in vain is followed by a look at all queues of the session, and one that lasts is not waited for: a lost
//!   wake-up costs a second at most, also if its queue's claim goes along with a read that has just begun. After a read
//!   that failed, everybody claims anew: what was on the list may be lost, and with it their places.

mod lines;
mod watch;

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::AbortHandle, time::Instant};

use self::{
    lines::{Heard, Lines, Taker, Waiting},
    watch::Watch,
};
use super::{
    Catch, Session,
    claims::{self, Wish},
};
use crate::{
    message::Name,
    store::{Rest, StoreError},
};

/// Takes what was claimed, wherever that is known first.
pub(super) type Deliver = Box<dyn FnOnce(Catch) + Send>;

/// The lookout of a session, begun with its first wait; it ends with the last clone of the session.
pub(super) struct Lookout {
    lines: Arc<Lines>,
    task: AbortHandle,
}

impl Lookout {
    fn begin(session: &Session) -> Self {
        let lines = Arc::<Lines>::default();
        let watch = Watch::new(session.claimer.clone(), session.office.clone(), lines.clone());
        let task = session.work.spawn(watch.run()).abort_handle();
        Self { lines, task }
    }

    /// Whether messages that a beat has told of as held under this claim have not been read for too long. If so, whoever
    /// asks has to hand them back.
    pub(super) fn has_left_unread(&self, queue: &Name, claim_no: u64) -> bool {
        self.lines.has_left_unread(queue, claim_no)
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A place in the line of a queue, given up when dropped.
struct Ticket<'a> {
    session: &'a Session,
    lines: Arc<Lines>,
    queue: Name,
    taker: Taker,
    heard: oneshot::Receiver<Heard>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let goes_along = self.lines.withdraw(&self.queue);
        if self.taker.take().is_some() && goes_along {
            // What its claim may catch goes back; that should not take a second.
            let caller = self.session.claimer.caller.clone();
            self.session.office.spawn(async move { caller.store().poke(caller.id()).await });
        }
    }
}

/// Claims as soon as the queue is rung for, and when the next message is due, and delivers what that brings.
pub(super) async fn claim_when_ready(
    session: &Session, wish: Wish, due: Option<Duration>, deliver: Deliver,
) -> Result<Rest, StoreError> {
    let taker = Taker::new(deliver);
    if let Some(mut ticket) = line_up(session, &wish, &taker) {
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
            () = due => if ticket.lines.withdraw(&wish.queue) {
                session.claimer.caller.store().poke(session.id()).await.ok();
                (&mut ticket.heard).await
            } else {
                Ok(Heard::Ring)
            },
        };
        if let Ok(Heard::Caught(rest)) = heard {
            return rest;
        }
    }
    let catch = claims::claim(session, wish).await?;
    let rest = catch.rest;
    taker.give(catch);
    Ok(rest)
}

/// A place in the line of a queue; none if it has been rung for.
fn line_up<'a>(session: &'a Session, wish: &Wish, taker: &Taker) -> Option<Ticket<'a>> {
    let lookout = session.lookout.get_or_init(|| Lookout::begin(session));
    let (reply, heard) = oneshot::channel();
    let waiting = Waiting { wish: wish.clone(), since: Instant::now(), taker: taker.clone(), reply };
    let lined_up = lookout.lines.line_up(waiting);
    let (lines, queue) = (lookout.lines.clone(), wish.queue.clone());
    lined_up.then(|| Ticket { session, lines, queue, taker: taker.clone(), heard })
}
