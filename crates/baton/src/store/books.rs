//! The books of a queue: what the ledger says, what a recount finds, and whether the two agree.

use crate::message::{IdSum, Name};

/// The ledger of one queue: counters that every operation keeps as it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Books {
    /// The queue.
    pub queue: Name,
    /// Whether claims are held back.
    pub paused: bool,
    /// Ids allotted so far; the last one is this number.
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
    /// (Σ id) of those finished.
    pub done_sum: IdSum,
    /// (Σ id) of those removed.
    pub removed_sum: IdSum,
    /// (Σ id) of those cancelled.
    pub cancelled_sum: IdSum,
    /// Bytes that the messages ready, delayed and in flight count for: their bodies and headers as they are stored.
    pub bytes: u64,
    /// Pushes refused for an old baton or session.
    pub stale_pushes: u64,
    /// Messages in settles refused for an old token or session.
    pub stale_settles: u64,
    /// The newest place among the errors.
    pub failed_seq: u64,
}

/// A counter of the books as stores keep it.
pub(super) struct Counter {
    /// Its name there.
    pub(super) name: &'static str,
    pub(super) get: fn(&Books) -> u64,
    pub(super) set: fn(&mut Books, u64),
}

/// Declares how stores keep the books: the counters in the order they are given in, each as a number. `as` gives the name
/// that stores use.
macro_rules! counters {
    (@stored $name:ident) => { stringify!($name) };
    (@stored $name:ident $stored:ident) => { stringify!($stored) };
    ($($name:ident $(as $stored:ident)?: $get:expr, $set:expr;)*) => {
        /// All counters, in the order in which stores give them.
        pub(super) const COUNTERS: &[Counter] = &[$(Counter {
            name: counters!(@stored $name $($stored)?),
            get: |books| $get(books.$name),
            set: |books, number| books.$name = $set(number),
        },)*];
    };
}

impl Books {
    /// Whether the queue takes `bytes` more where it may hold `bound`. An empty one takes one call of any size.
    pub(crate) const fn has_room(&self, bytes: u64, bound: u64) -> bool {
        self.bytes == 0 || self.bytes + bytes <= bound
    }

    counters! {
        pushed: number, number;
        ready: number, number;
        delayed: number, number;
        in_flight: number, number;
        done: number, number;
        failed as dead: number, number;
        removed as drained: number, number;
        cancelled: number, number;
        requeued: number, number;
        done_sum: IdSum::value, IdSum::from_u64;
        removed_sum as drained_sum: IdSum::value, IdSum::from_u64;
        cancelled_sum: IdSum::value, IdSum::from_u64;
        bytes: number, number;
        stale_pushes: number, number;
        stale_settles: number, number;
        failed_seq as dead_seq: number, number;
        paused: u64::from, is_one;
    }

    /// The books of a queue nothing was pushed to.
    #[must_use]
    pub const fn new(queue: Name) -> Self {
        Self {
            queue,
            paused: false,
            pushed: 0,
            ready: 0,
            delayed: 0,
            in_flight: 0,
            done: 0,
            failed: 0,
            removed: 0,
            cancelled: 0,
            requeued: 0,
            done_sum: IdSum::from_u64(0),
            removed_sum: IdSum::from_u64(0),
            cancelled_sum: IdSum::from_u64(0),
            bytes: 0,
            stale_pushes: 0,
            stale_settles: 0,
            failed_seq: 0,
        }
    }

    /// I1: every id allotted is in exactly one state.
    #[must_use]
    pub fn balance(&self) -> bool {
        // Wide enough for counters that were damaged.
        let states = [self.ready, self.delayed, self.in_flight, self.done, self.failed, self.removed, self.cancelled];
        u128::from(self.pushed) == states.into_iter().map(u128::from).sum()
    }
}

/// A counter that is a number already.
const fn number(number: u64) -> u64 {
    number
}

const fn is_one(number: u64) -> bool {
    number == 1
}

/// Messages found by looking at the data: how many, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// (Σ id).
    pub sum: IdSum,
    /// Bytes that they count for; none among the errors.
    pub bytes: u64,
}

impl Counted {
    /// Adds one more finding.
    pub const fn add(&mut self, count: u64, sum: IdSum) {
        self.count += count;
        self.sum = self.sum.plus(sum);
    }

    /// Adds what was found elsewhere.
    pub const fn join(&mut self, other: Self) {
        self.add(other.count, other.sum);
        self.bytes += other.bytes;
    }
}

/// Messages that wait or are claimed, and have no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lacking {
    /// How many.
    pub count: u64,
    /// The lowest id among them.
    pub first: Option<u64>,
}

impl Lacking {
    /// Adds more of them.
    pub fn add(&mut self, count: u64, first: Option<u64>) {
        self.count += count;
        self.first = self.first.into_iter().chain(first).min();
    }
}

/// One queue recounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRecount {
    /// The ledger of the same instant.
    pub books: Books,
    /// Counted waiting.
    pub ready: Counted,
    /// Counted delayed.
    pub delayed: Counted,
    /// Counted in claims.
    pub in_flight: Counted,
    /// Counted among the errors.
    pub failed: Counted,
    /// Counted without a body.
    pub lacking: Lacking,
}

impl QueueRecount {
    /// Bytes that those found waiting, delayed and in claims count for.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.ready.bytes + self.delayed.bytes + self.in_flight.bytes
    }

    /// Whether the data agrees with the ledger, both account for every id ever allotted exactly once, and every message
    /// that may still run has its body. The ledger may have more bytes than are found: those of bodies that went missing
    /// are in it until the queue is empty, since nobody knows how many they were.
    #[must_use]
    pub fn balance(&self) -> bool {
        let Self { books, ready, delayed, in_flight, failed, lacking } = self;
        let sum = ready.sum.plus(delayed.sum).plus(in_flight.sum).plus(failed.sum);
        let sum = sum.plus(books.done_sum).plus(books.removed_sum).plus(books.cancelled_sum);
        lacking.count == 0
            && self.bytes() <= books.bytes
            && books.balance()
            && ready.count == books.ready
            && delayed.count == books.delayed
            && in_flight.count == books.in_flight
            && failed.count == books.failed
            && sum.value() == IdSum::up_to(books.pushed).value()
    }
}

/// All queues recounted in one snapshot, or while the store was held still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recounted {
    /// By name.
    pub queues: Vec<QueueRecount>,
    /// How long message-moving calls were held back; 0 with a snapshot.
    pub held_ms: u64,
}
