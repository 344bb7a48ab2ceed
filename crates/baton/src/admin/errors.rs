//! Errors: pages that are handed over, and only then disposed of.

use std::{collections::BTreeMap, time::Duration};

use serde::Serialize;

use super::{Admin, AdminError, FailedMessage, Unknown, causes::contains, removal::ErrorRemoval};
use crate::{
    Shutdown,
    message::{MessageId, Name},
    store::{Books, Disposal, ErrorRecord, Peek, StoreError, Survey},
};

/// How often a follower looks for new errors.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PAGE_ERRORS: u32 = 1000;
const PAGE_BYTES: u64 = 4 << 20;

/// Which errors are wanted; all of them by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only those of this queue.
    pub queue: Option<Name>,
    /// Only those of messages with these ids, unless there are none here; ids are those of one queue.
    pub ids: Vec<MessageId>,
    /// Only those whose text contains this, in which `#` stands for a run of digits too, as in a [`Cause`](super::Cause).
    pub containing: Option<String>,
    /// At most so many.
    pub limit: Option<u64>,
}

impl Wanted {
    pub(super) fn queue(&self, books: &Books) -> bool {
        books.failed > 0 && self.queue.as_ref().is_none_or(|queue| *queue == books.queue)
    }

    pub(super) fn error(&self, error: &ErrorRecord) -> bool {
        (self.ids.is_empty() || self.ids.contains(&error.id))
            && self.containing.as_ref().is_none_or(|text| contains(&error.error, text))
    }
}

/// What whoever errors are handed to says of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It has them: they may be disposed of.
    Yes,
    /// It is gone and takes no more; this page stays where it is.
    Gone,
}

/// What came of handing errors over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HandedOver {
    /// Errors handed over; where they were to be disposed of, those that were.
    pub count: u64,
    /// Those among them without a body, which are not requeued.
    pub bodiless: u64,
    /// How many errors the queues wanted had, whatever their text.
    pub total: u64,
    /// Those among them that somebody else removed or requeued before they could be handed over or disposed of.
    pub missed: u64,
    /// Whether the one they were handed to has gone.
    pub gone: bool,
}

impl Admin {
    /// The errors wanted, in the order of their queues and of their failing. All of them are in memory at once: see
    /// [`Admin::hand_over`] for more than that.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue; [`AdminError::OfWhichQueue`] if ids are wanted and several
    /// queues have errors; the store's failure after the time to wait for it.
    pub async fn errors(&self, wanted: &Wanted) -> Result<Vec<FailedMessage>, AdminError> {
        let mut errors = Vec::new();
        let list = |page: &[FailedMessage]| {
            errors.extend_from_slice(page);
            Taken::Yes
        };
        self.hand_over(wanted, None, None, list).await?;
        Ok(errors)
    }

    /// Puts failed messages back into their queue under the same ids, attempts and crashes forgotten; how many were.
    /// Those that are no errors are passed over, and those without a body stay.
    ///
    /// # Errors
    /// [`AdminError::RemovalRunning`] while another process removes or requeues errors of the queue.
    pub async fn requeue(&self, queue: &Name, ids: Vec<MessageId>) -> Result<u64, AdminError> {
        self.dispose(queue, ids, Disposal::Requeue).await
    }

    /// Removes failed messages from the errors; how many were there.
    ///
    /// # Errors
    /// As [`Admin::requeue`].
    pub async fn remove(&self, queue: &Name, ids: Vec<MessageId>) -> Result<u64, AdminError> {
        self.dispose(queue, ids, Disposal::Remove).await
    }

    async fn dispose(&self, queue: &Name, ids: Vec<MessageId>, disposal: Disposal) -> Result<u64, AdminError> {
        let admin = self.apart();
        let mut removal = ErrorRemoval::begin(&admin, queue, disposal).await?;
        let disposed = loop {
            match removal.dispose(ids.clone()).await {
                Ok(None) => {}
                Ok(Some(count)) => break Ok(count),
                Err(error) => break Err(error),
            }
        };
        admin.leave().await;
        disposed
    }

    /// Hands errors over a page at a time, and disposes of those that were taken if so asked: a run that is cut off may
    /// hand some over again the next time, and loses none. With `follow` it goes on with new errors until that is
    /// cancelled. One that is requeued and fails again does not come round in the same look.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue, unless it is to follow; [`AdminError::OfWhichQueue`] if ids
    /// are wanted and several queues have errors; [`AdminError::RemovalRunning`] while another process removes the errors of a
    /// queue; the store's failure.
    ///
    /// # Cancel safety
    /// A page that was taken may stay where it is when this is dropped; it is then handed over again the next time.
    /// Others may removal when the lease of this operation is over.
    pub async fn hand_over(
        &self, wanted: &Wanted, disposal: Option<Disposal>, follow: Option<&Shutdown>,
        take: impl FnMut(&[FailedMessage]) -> Taken,
    ) -> Result<HandedOver, AdminError> {
        let (mut survey, admin) = (self.survey().await?, self.apart());
        let total = self.total(wanted, &survey, follow.is_some())?;
        let handed_over = HandedOver { count: 0, bodiless: 0, total, missed: 0, gone: false };
        let left = wanted.limit.unwrap_or(u64::MAX);
        let mut handover = Handover { admin: &admin, wanted, follow, take, left, seen: 0, handed_over };
        // How far the errors of each queue were seen.
        let mut seen: BTreeMap<Name, u64> = BTreeMap::new();
        loop {
            for books in survey.queues.iter().filter(|books| wanted.queue(books)) {
                let after = seen.get(&books.queue).copied().filter(|after| *after <= books.failed_seq).unwrap_or(0);
                if after == books.failed_seq {
                    continue;
                }
                let mut removal = match disposal {
                    Some(disposal) => Some(ErrorRemoval::begin(&admin, &books.queue, disposal).await?),
                    None => None,
                };
                let upto = removal.as_ref().map_or(books.failed_seq, |removal| removal.upto);
                let reached = handover.queue(&books.queue, after, upto, removal.as_mut()).await?;
                seen.insert(books.queue.clone(), reached);
                if handover.has_ended() {
                    break;
                }
            }
            // A removal lasts as long as its session: others may begin while this one waits.
            admin.leave().await;
            let Some(shutdown) = follow.filter(|_| !handover.has_ended()) else { return Ok(handover.end()) };
            tokio::select! {
                () = shutdown.any() => return Ok(handover.handed_over),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            survey = self.survey().await?;
        }
    }

    /// How many errors there are to choose from. A queue that the fleet does not have is refused, unless it is waited
    /// for: then that is told. So are ids of nobody knows which queue.
    pub(super) fn total(&self, wanted: &Wanted, survey: &Survey, waits: bool) -> Result<u64, AdminError> {
        let queue = wanted.queue.as_ref();
        if waits {
            self.note_unknown(queue, survey);
        } else if let Some(unknown) = queue.and_then(|queue| Unknown::queue(queue, survey)) {
            return Err(unknown.into());
        }
        let chosen: Vec<&Books> = survey.queues.iter().filter(|books| wanted.queue(books)).collect();
        if !wanted.ids.is_empty() && chosen.len() > 1 {
            return Err(AdminError::OfWhichQueue { queues: chosen.iter().map(|it| it.queue.clone()).collect() });
        }
        Ok(chosen.iter().map(|books| books.failed).fold(0, u64::saturating_add))
    }

    pub(super) async fn page(&self, queue: &Name, after: u64, upto: u64) -> Result<Vec<ErrorRecord>, StoreError> {
        let peek = Peek { queue: queue.clone(), after, upto, limit: PAGE_ERRORS, max_bytes: PAGE_BYTES };
        Ok(self.ask(peek).await?.errors)
    }
}

struct Handover<'a, T> {
    admin: &'a Admin,
    wanted: &'a Wanted,
    follow: Option<&'a Shutdown>,
    take: T,
    left: u64,
    /// Errors that were looked at, wanted or not.
    seen: u64,
    handed_over: HandedOver,
}

impl<T: FnMut(&[FailedMessage]) -> Taken> Handover<'_, T> {
    fn has_ended(&self) -> bool {
        self.left == 0 || self.handed_over.gone || self.follow.is_some_and(|shutdown| shutdown.asked().is_some())
    }

    /// What came of it, once all were looked at or enough of them.
    fn end(mut self) -> HandedOver {
        if !self.has_ended() {
            self.handed_over.missed += self.handed_over.total.saturating_sub(self.seen);
        }
        self.handed_over
    }

    /// Hands the errors of one queue after `after`, up to and with `upto`, over; how far it came.
    async fn queue(
        &mut self, queue: &Name, mut after: u64, upto: u64, mut removal: Option<&mut ErrorRemoval<'_>>,
    ) -> Result<u64, AdminError> {
        while !self.has_ended() {
            let page = self.admin.page(queue, after, upto).await?;
            let Some(last) = page.last() else { return Ok(upto) };
            let seen = page.len() as u64;
            let mut reached = last.seq;
            let mut shown = Vec::new();
            for error in page {
                if !self.wanted.error(&error) {
                    continue;
                }
                let seq = error.seq;
                shown.push(FailedMessage::of(queue, error));
                if shown.len() as u64 == self.left {
                    reached = seq;
                    break;
                }
            }
            if !shown.is_empty() {
                if (self.take)(&shown) == Taken::Gone {
                    self.handed_over.gone = true;
                    return Ok(after);
                }
                let mut count = shown.len() as u64;
                let bodiless = shown.iter().filter(|error| error.body.is_empty()).count() as u64;
                if let Some(removal) = removal.as_deref_mut() {
                    let ids = shown.iter().map(|error| error.id).collect();
                    let Some(disposed) = removal.dispose(ids).await? else { continue };
                    let stay = if removal.requeues() { bodiless } else { 0 };
                    self.handed_over.missed += count.saturating_sub(disposed + stay);
                    count = disposed;
                }
                self.left -= shown.len() as u64;
                self.handed_over.count += count;
                self.handed_over.bodiless += bodiless;
            }
            self.seen += seen;
            after = reached;
        }
        Ok(after)
    }
}
