//! The books, and whether they balance.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

use super::{Admin, AdminError, Unknown};
use crate::{
    message::Name,
    store::{Books, Lacking, QueueRecount, Recount},
};

/// The sums over the queues looked at, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Audit {
    /// Ids allotted.
    pub pushed: u64,
    /// Waiting to be claimed.
    pub ready: u64,
    /// Waiting to be due.
    pub delayed: u64,
    /// Claimed and not settled.
    pub in_flight: u64,
    /// Finished.
    pub done: u64,
    /// Among the errors.
    pub failed: u64,
    /// Drained from the errors.
    pub removed: u64,
    /// Ended because their calls were cancelled.
    pub cancelled: u64,
    /// Requeued from the errors, ever.
    pub requeued: u64,
    /// Whether nothing is wrong.
    pub balanced: bool,
    /// Pushes refused for an old baton or session.
    pub stale_pushes: u64,
    /// Messages in settles refused for an old token.
    pub stale_settles: u64,
    /// What is wrong.
    pub unbalanced: Vec<Fault>,
    /// How long a deep audit held the fleet still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
    /// The books of each queue looked at.
    #[serde(skip)]
    pub books: Vec<Books>,
}

/// Something wrong with a queue. Serialized as the line that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The books do not add up.
    Books {
        /// The queue.
        queue: Name,
        /// Ids allotted.
        pushed: u64,
        /// How many more are accounted for; below zero if they are fewer.
        off: i128,
    },
    /// The data differs from the books.
    Data {
        /// The queue.
        queue: Name,
        /// The states that differ: name, in the books, in the data. None if the counts agree and the ids do not.
        states: Vec<(&'static str, u64, u64)>,
    },
    /// Messages that may still run have no body.
    Bodies {
        /// The queue.
        queue: Name,
        /// How many.
        count: u64,
        /// The lowest id among them.
        first: u64,
    },
}

impl Admin {
    /// Checks that every message ever pushed, to one queue or to all, is in exactly one state. With `deep` the messages
    /// themselves are counted too and compared with the books, and every one that may still run must have its body; the
    /// fleet may be held still for so long at most.
    ///
    /// # Errors
    /// [`AdminError::Unknown`] if the fleet has no such queue; the store's failure. Books that do not balance are no
    /// error: see [`Audit::balanced`].
    pub async fn audit(&self, queue: Option<&Name>, deep: Option<Duration>) -> Result<Audit, AdminError> {
        let survey = self.survey().await?;
        if let Some(unknown) = queue.and_then(|queue| Unknown::queue(queue, &survey)) {
            return Err(unknown.into());
        }
        let wanted = |books: &Books| queue.is_none_or(|queue| *queue == books.queue);
        let Some(max_hold) = deep else {
            let books: Vec<Books> = survey.queues.into_iter().filter(wanted).collect();
            let faults = books.iter().filter_map(books_fault).collect();
            return Ok(Audit::of(books, faults, None));
        };
        let max_hold_ms = u64::try_from(max_hold.as_millis()).unwrap_or(u64::MAX);
        let recounted = self.ask_at_length(Recount { max_hold_ms }).await?;
        let queues: Vec<QueueRecount> = recounted.queues.into_iter().filter(|it| wanted(&it.books)).collect();
        let faults = recount_faults(&queues);
        Ok(Audit::of(queues.into_iter().map(|it| it.books).collect(), faults, Some(recounted.held_ms)))
    }
}

impl Audit {
    /// Damaged counters may hold anything, so sums stop at the largest number.
    fn of(books: Vec<Books>, unbalanced: Vec<Fault>, held_ms: Option<u64>) -> Self {
        let sum = |pick: fn(&Books) -> u64| books.iter().map(pick).fold(0, u64::saturating_add);
        Self {
            pushed: sum(|it| it.pushed),
            ready: sum(|it| it.ready),
            delayed: sum(|it| it.delayed),
            in_flight: sum(|it| it.in_flight),
            done: sum(|it| it.done),
            failed: sum(|it| it.failed),
            removed: sum(|it| it.removed),
            cancelled: sum(|it| it.cancelled),
            requeued: sum(|it| it.requeued),
            stale_pushes: sum(|it| it.stale_pushes),
            stale_settles: sum(|it| it.stale_settles),
            balanced: unbalanced.is_empty(),
            unbalanced,
            held_ms,
            books,
        }
    }
}

/// All that is wrong with recounted queues: books that do not add up first, then data that differs from them.
fn recount_faults(queues: &[QueueRecount]) -> Vec<Fault> {
    let books = queues.iter().filter_map(|it| books_fault(&it.books));
    books.chain(queues.iter().filter_map(data_fault)).chain(queues.iter().filter_map(body_fault)).collect()
}

fn books_fault(it: &Books) -> Option<Fault> {
    let states = [it.ready, it.delayed, it.in_flight, it.done, it.failed, it.removed, it.cancelled];
    let off = states.into_iter().map(i128::from).sum::<i128>() - i128::from(it.pushed);
    (off != 0).then(|| Fault::Books { queue: it.queue.clone(), pushed: it.pushed, off })
}

fn body_fault(it: &QueueRecount) -> Option<Fault> {
    let Lacking { count, first } = it.lacking;
    Some(Fault::Bodies { queue: it.books.queue.clone(), count, first: first? })
}

fn data_fault(it: &QueueRecount) -> Option<Fault> {
    // Books that do not add up are reported as such; adding them again proves nothing.
    let it = &QueueRecount { lacking: Lacking::default(), ..it.clone() };
    if books_fault(&it.books).is_some() || it.balance() {
        return None;
    }
    let states = [
        ("ready", it.books.ready, it.ready.count),
        ("delayed", it.books.delayed, it.delayed.count),
        ("in flight", it.books.in_flight, it.in_flight.count),
        ("failed", it.books.failed, it.failed.count),
    ];
    // Bodies that went missing are counted still.
    let bytes = Some(("bytes", it.books.bytes, it.bytes())).filter(|(_, booked, found)| found > booked);
    let states = states.into_iter().filter(|(_, booked, found)| booked != found).chain(bytes).collect();
    Some(Fault::Data { queue: it.books.queue.clone(), states })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Books { queue, pushed, off } if *off > 0 => {
                write!(f, "queue {queue}: {off} more accounted for than the {pushed} pushed")
            }
            Self::Books { queue, pushed, off } => {
                write!(f, "queue {queue}: {} of {pushed} pushed are not accounted for", -off)
            }
            Self::Data { queue, states } if states.is_empty() => {
                write!(f, "queue {queue}: the counts agree, but some id is there twice and another is missing")
            }
            Self::Data { queue, states } => {
                let differing = states
                    .iter()
                    .map(|(state, booked, found)| format!("{state} is {booked} in the books, {found} in the data"));
                write!(f, "queue {queue}: {}", differing.collect::<Vec<_>>().join(", "))
            }
            Self::Bodies { queue, count: 1, first } => {
                write!(f, "queue {queue}: the body of {queue}/{first} is missing")
            }
            Self::Bodies { queue, count, first } => {
                write!(f, "queue {queue}: the bodies of {count} messages are missing, from {queue}/{first} on")
            }
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
