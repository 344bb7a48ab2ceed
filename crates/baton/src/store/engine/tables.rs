//! What the engine keeps, and the few moves a home for it must offer.
//!
//! A home makes one engine call atomic: either all moves of a call are kept, or (on an error) none.

use bytes::Bytes;

use crate::{
    message::{Digest, Home, Key, Name, Parcel, Piece, SessionId},
    store::{Books, DeadMessage, Kind, Offer, Place, Stop, StoreError},
};

/// The result of a move; only homes that can fail ever return an error.
pub(crate) type Moved<T> = Result<T, StoreError>;

/// What belongs to the fleet as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) incarnation: String,
    /// The fleet clock: runs only while sessions call, and never faster than half the smallest lease a call.
    pub(crate) clock: u64,
    /// Store time when the clock was last advanced.
    pub(crate) last: u64,
    /// Sessions joined ever; orders them.
    pub(crate) joins: u64,
    /// Sessions up to this join are asked to stop.
    pub(crate) stop: Option<(u64, Stop)>,
}

impl Meta {
    /// The beginning of a fleet.
    pub(crate) fn new() -> Self {
        Self { incarnation: SessionId::random().to_string(), clock: 0, last: 0, joins: 0, stop: None }
    }
}

/// A session as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    pub(crate) kind: Kind,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) queues: Vec<Name>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) lease_ms: u64,
    /// Its place among all joins.
    pub(crate) join_no: u64,
    pub(crate) joined_ms: u64,
    pub(crate) beat_ms: u64,
    pub(crate) report: Bytes,
    /// Fleet clock at which it may be reaped.
    pub(crate) expires: u64,
    /// Suspects it holds: never more than one.
    pub(crate) suspects: u32,
    pub(crate) settle_no: u64,
    pub(crate) submit_no: u64,
    pub(crate) dispose_no: u64,
}

/// A source as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    pub(crate) queue: Name,
    /// Nothing after a rewind: the next join defines it.
    pub(crate) definition: Option<Digest>,
    /// May name a session that is gone: then nobody holds it.
    pub(crate) holder: Option<SessionId>,
    pub(crate) epoch: u64,
    pub(crate) cursor: String,
    pub(crate) batch_no: u64,
    pub(crate) ended: bool,
}

impl SourceRecord {
    /// Whether an offer means this source; a rewound one takes any definition.
    pub(crate) fn defined_as(&self, offer: &Offer) -> bool {
        self.definition.is_none_or(|known| known == offer.definition && self.queue == offer.queue)
    }
}

/// A queue as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRecord {
    pub(crate) books: Books,
    /// May name a session that is gone: then nobody drains.
    pub(crate) drainer: Option<SessionId>,
    /// How many of those who wait closing the record wakes: one, if this call gave the queue something. Never kept.
    pub(crate) wakes: usize,
}

/// The claim numbers of one session for one queue: the highest used, and those below it that were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClaimNumbers {
    pub(crate) high: u64,
    pub(crate) holes: Vec<u64>,
}

/// What a claim number holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimRecord {
    pub(crate) queue: Name,
    pub(crate) pieces: Vec<Piece>,
}

/// An idempotency key in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    pub(crate) queue: Name,
    pub(crate) id: u64,
    pub(crate) digest: Digest,
    pub(crate) expires_ms: u64,
}

/// The two lines in which messages wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Line {
    Ready,
    Suspects,
}

impl Line {
    /// Where a piece waits.
    pub(crate) const fn of(piece: &Piece) -> Self {
        if piece.is_suspect() { Self::Suspects } else { Self::Ready }
    }
}

/// Which stored bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum BodyKey {
    /// The parcel beginning at this id.
    Parcel(u64),
    /// The copy of this id's own.
    Own(u64),
}

impl BodyKey {
    /// Where a piece's bodies are.
    pub(crate) const fn of(piece: &Piece) -> Self {
        match piece.home {
            Home::Parcel { first, .. } => Self::Parcel(first),
            Home::Own => Self::Own(piece.range.first),
        }
    }
}

/// What was found of stored bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut {
    /// These.
    Some(Parcel),
    /// They are there, but not even one fits.
    NoneFits,
    /// They are not there.
    Missing,
}

impl Cut {
    /// What fits of the messages `start .. start + len` of a parcel.
    pub(crate) fn of(parcel: &Parcel, start: u32, len: u32, budget: u64) -> Self {
        let fitting = parcel.fitting(start, len, usize::try_from(budget).unwrap_or(usize::MAX));
        parcel.cut(start, fitting).map_or(Self::NoneFits, Self::Some)
    }
}

/// Numbered calls whose answers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Series {
    Submit,
    Settle,
    Dispose,
}

/// A home for the engine's records.
pub(crate) trait Tables {
    fn meta(&mut self) -> Moved<Meta>;
    fn put_meta(&mut self, meta: &Meta) -> Moved<()>;

    fn session(&mut self, id: SessionId) -> Moved<Option<SessionRecord>>;
    fn put_session(&mut self, id: SessionId, record: &SessionRecord) -> Moved<()>;
    /// Removes the session with its answers and claim numbers; its claims must be gone, and its places among those who
    /// wait.
    fn drop_session(&mut self, id: SessionId) -> Moved<()>;
    /// All sessions by id.
    fn sessions(&mut self) -> Moved<Vec<(SessionId, SessionRecord)>>;
    /// Sessions whose lease is over at `clock`, by (expiry, id).
    fn expired(&mut self, clock: u64, limit: usize) -> Moved<Vec<SessionId>>;
    fn smallest_lease(&mut self) -> Moved<Option<u64>>;
    fn answer(&mut self, id: SessionId, series: Series, no: u64) -> Moved<Option<String>>;
    /// Keeps an answer and forgets the one `keep` numbers before it.
    fn put_answer(&mut self, id: SessionId, series: Series, no: u64, keep: u64, answer: &str) -> Moved<()>;

    fn claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<Option<ClaimRecord>>;
    fn put_claim(&mut self, id: SessionId, claim_no: u64, record: &ClaimRecord) -> Moved<()>;
    fn drop_claim(&mut self, id: SessionId, queue: &Name, claim_no: u64) -> Moved<()>;
    /// All claims of a session by queue and number.
    fn claims(&mut self, id: SessionId) -> Moved<Vec<(u64, ClaimRecord)>>;
    /// The first `limit` of them without what they hold.
    fn held_numbers(&mut self, id: SessionId, limit: usize) -> Moved<Vec<(Name, u64)>>;
    fn numbers(&mut self, id: SessionId, queue: &Name) -> Moved<ClaimNumbers>;
    fn put_numbers(&mut self, id: SessionId, queue: &Name, numbers: &ClaimNumbers) -> Moved<()>;

    /// Enters a session among those who wait for a queue since `now`, unless it is there.
    fn add_waiter(&mut self, queue: &Name, id: SessionId, now: u64) -> Moved<()>;
    fn is_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<bool>;
    fn drop_waiter(&mut self, queue: &Name, id: SessionId) -> Moved<()>;
    /// Whether anybody waits for a queue.
    fn is_waited_for(&mut self, queue: &Name) -> Moved<bool>;
    /// The queues that a session waits for.
    fn waits_of(&mut self, id: SessionId) -> Moved<Vec<Name>>;
    /// Shows each session that waits for a queue, and since when.
    fn each_waiter(&mut self, queue: &Name, show: &mut dyn FnMut(u64, SessionId)) -> Moved<()>;
    /// Puts the queue on the session's wake-up list, once this call is kept.
    fn ring(&mut self, id: SessionId, queue: &Name) -> Moved<()>;
    /// How many batons a session holds: while it has one, it does not count among those that work for its queues.
    fn batons(&mut self, id: SessionId) -> Moved<u64>;
    fn put_batons(&mut self, id: SessionId, count: u64) -> Moved<()>;
    /// How many nodes without a baton work for a queue.
    fn workers(&mut self, queue: &Name) -> Moved<u64>;
    fn put_workers(&mut self, queue: &Name, count: u64) -> Moved<()>;

    fn source(&mut self, name: &Name) -> Moved<Option<SourceRecord>>;
    fn put_source(&mut self, name: &Name, record: &SourceRecord) -> Moved<()>;
    /// Forgets a source; one that is not known is left alone.
    fn drop_source(&mut self, name: &Name) -> Moved<()>;
    /// All sources by name.
    fn sources(&mut self) -> Moved<Vec<(Name, SourceRecord)>>;

    fn queue(&mut self, name: &Name) -> Moved<Option<QueueRecord>>;
    fn put_queue(&mut self, record: &QueueRecord) -> Moved<()>;
    /// All queues by name.
    fn queues(&mut self) -> Moved<Vec<QueueRecord>>;

    /// The piece at the front of a line.
    fn front(&mut self, queue: &Name, line: Line) -> Moved<Option<Piece>>;
    /// Takes the front away, or leaves `rest` in its place.
    fn advance(&mut self, queue: &Name, line: Line, rest: Option<&Piece>) -> Moved<()>;
    fn push_back(&mut self, queue: &Name, line: Line, piece: &Piece) -> Moved<()>;
    /// Puts pieces before all others, the first of them foremost.
    fn push_front(&mut self, queue: &Name, line: Line, pieces: &[Piece]) -> Moved<()>;
    /// All pieces of a line, in order.
    fn line(&mut self, queue: &Name, line: Line) -> Moved<Vec<Piece>>;

    fn put_delayed(&mut self, queue: &Name, due: u64, piece: &Piece) -> Moved<()>;
    /// The delayed piece with the smallest (due, id).
    fn next_delayed(&mut self, queue: &Name) -> Moved<Option<(u64, Piece)>>;
    fn drop_delayed(&mut self, queue: &Name, due: u64, id: u64) -> Moved<()>;
    /// All delayed pieces by (due, id).
    fn delayed(&mut self, queue: &Name) -> Moved<Vec<Piece>>;

    fn put_bodies(&mut self, queue: &Name, key: BodyKey, parcel: &Parcel) -> Moved<()>;
    /// As many of the messages `start .. start + len` as fit into `budget` body bytes; costs what it returns, not what is
    /// stored.
    fn cut_bodies(&mut self, queue: &Name, key: BodyKey, start: u32, len: u32, budget: u64) -> Moved<Cut>;
    /// Whether there are bodies of that key.
    fn has_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<bool>;
    /// Removes stored bodies; how many bytes they took.
    fn drop_bodies(&mut self, queue: &Name, key: BodyKey) -> Moved<u64>;
    /// How many messages of a parcel are left, if some have gone.
    fn left(&mut self, queue: &Name, parcel: u64) -> Moved<Option<u32>>;
    fn put_left(&mut self, queue: &Name, parcel: u64, left: Option<u32>) -> Moved<()>;

    fn put_dead(&mut self, queue: &Name, message: &DeadMessage) -> Moved<()>;
    /// Errors with `after < seq <= upto`: at most `limit`, and with at most `budget` bytes unless it is one.
    fn dead_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<DeadMessage>>;
    fn take_dead(&mut self, queue: &Name, id: u64) -> Moved<Option<DeadMessage>>;
    /// The ids of all errors.
    fn dead_ids(&mut self, queue: &Name) -> Moved<Vec<u64>>;

    fn key(&mut self, key: &Key) -> Moved<Option<KeyRecord>>;
    fn put_key(&mut self, key: &Key, record: &KeyRecord) -> Moved<()>;
    fn key_count(&mut self) -> Moved<u64>;
    /// Forgets up to `limit` keys that expired at `now`, oldest first.
    fn expire_keys(&mut self, now: u64, limit: u32) -> Moved<()>;

    fn bookmark(&mut self, key: &Key) -> Moved<Option<Place>>;
    fn put_bookmark(&mut self, key: &Key, place: &Place) -> Moved<()>;

    fn result(&mut self, queue: &Name, id: u64) -> Moved<Option<(u64, Bytes)>>;
    fn put_result(&mut self, queue: &Name, id: u64, expires_ms: u64, result: &Bytes) -> Moved<()>;
    /// Forgets up to `limit` results that expired at `now`, oldest first.
    fn expire_results(&mut self, now: u64, limit: u32) -> Moved<()>;

    /// Removes everything, back to a store never used.
    fn clear(&mut self) -> Moved<()>;
}
