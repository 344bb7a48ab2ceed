//! Calls: how they stand, what they have told, who holds and who follows them.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Moved;
use crate::{
    message::{CallId, Key, MessageId, Name, SessionId},
    store::CallState,
};

/// A call as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallRecord {
    /// When its first message was pushed.
    pub(crate) born: u64,
    /// Messages of it that have not ended.
    pub(crate) open: u64,
    /// Those of them that sessions hold, and those that are delayed.
    pub(crate) running: u64,
    pub(crate) delayed: u64,
    /// Messages of it that ended because it was cancelled.
    pub(crate) cancelled: u64,
    /// Whether its messages are to end at their next step.
    pub(crate) is_marked: bool,
    /// How it ended, once its last event is written; others of its messages may be open still.
    pub(crate) end: Option<CallState>,
    /// The number that the next event gets, and the first one kept.
    pub(crate) next: u64,
    pub(crate) first: u64,
    /// What the events kept count for, and the bytes of all keys.
    pub(crate) bytes: u64,
    pub(crate) key_bytes: u64,
    pub(crate) linger_ms: Option<u64>,
    /// When it is known to have been followed last.
    pub(crate) followed_ms: u64,
    /// The result of its first message, or why it is dead.
    pub(crate) outcome: Option<Bytes>,
    /// How many of its messages each session holds.
    pub(crate) holders: BTreeMap<SessionId, u64>,
    /// May name sessions that are gone: these follow no longer.
    pub(crate) followers: BTreeMap<SessionId, Follower>,
}

/// A session that follows a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follower {
    /// The first event that it has not read.
    pub(crate) position: u64,
    /// What it is woken with.
    pub(crate) number: u64,
    /// Whether it waits to be.
    pub(crate) waits: bool,
}

/// A message of a call while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hold {
    /// The session and the claim that hold it.
    pub(crate) by: Option<(SessionId, u64)>,
    /// How many events it has told since it was claimed last.
    pub(crate) emitted: u64,
    /// Since it failed: when it is due again.
    pub(crate) due_ms: Option<u64>,
}

/// The calls, by their first messages: named without births, which their records have.
pub(crate) trait Calls {
    fn call(&mut self, call: &CallId) -> Moved<Option<CallRecord>>;
    fn put_call(&mut self, call: &CallId, record: &CallRecord) -> Moved<()>;
    /// What those that have ended count for ([`weight`](crate::store::engine::calls::weight)).
    fn call_bytes(&mut self) -> Moved<u64>;
    /// Forgets up to `limit` calls that expired at `now`, oldest first, with all that they have told.
    fn expire_calls(&mut self, now: u64, limit: u32) -> Moved<()>;
    /// Forgets calls that have ended, oldest first (of those that expire together the lowest queue and id), until they
    /// counted for `bytes` or more, or `limit` have gone.
    fn drop_oldest_calls(&mut self, bytes: u64, limit: u32) -> Moved<()>;
    /// Sets when a call expires.
    fn put_call_end(&mut self, call: &CallId, expires_ms: u64, weight: u64) -> Moved<()>;

    /// The call that a message has joined.
    fn joined(&mut self, queue: &Name, id: MessageId) -> Moved<Option<CallId>>;
    fn put_joined(&mut self, queue: &Name, id: MessageId, call: &CallId) -> Moved<()>;
    fn drop_joined(&mut self, queue: &Name, id: MessageId) -> Moved<()>;

    /// A message of a call; what is not known of it is the default.
    fn hold(&mut self, call: &CallId, queue: &Name, id: MessageId) -> Moved<Hold>;
    fn put_hold(&mut self, call: &CallId, queue: &Name, id: MessageId, hold: &Hold) -> Moved<()>;

    /// The delayed messages of a call, the first due first (of those due together by queue and id), with when they are due.
    fn delayed_of(&mut self, call: &CallId, limit: usize) -> Moved<Vec<(u64, Name, MessageId)>>;

    /// Adds an event under this number, which follows the last.
    fn put_event(&mut self, call: &CallId, number: u64, event: &Bytes) -> Moved<()>;
    /// Events from a number on: at most `limit`, and with at most `budget` bytes unless it is one.
    fn events(&mut self, call: &CallId, from: u64, limit: u32, budget: u64) -> Moved<Vec<Bytes>>;
    /// Forgets the oldest events below a number until they counted for `bytes`; the first one left if it is below that
    /// number, else that number, and what they counted for.
    fn trim_events(&mut self, call: &CallId, below: u64, bytes: u64) -> Moved<(u64, u64)>;
    fn has_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<bool>;
    fn put_emit_key(&mut self, call: &CallId, key: &Key) -> Moved<()>;

    /// Sets when it is looked whether a call is forsaken; never without a time.
    fn put_look(&mut self, call: &CallId, at_ms: Option<u64>) -> Moved<()>;
    /// Calls that are to be looked at by now, the longest due first.
    fn looks(&mut self, now: u64, limit: usize) -> Moved<Vec<CallId>>;

    /// Has the session told with its beats that a call it holds messages of was cancelled, or no longer.
    fn tell_cancelled(&mut self, id: SessionId, call: &CallId, tell: bool) -> Moved<()>;
    /// What it is told.
    fn told_cancelled(&mut self, id: SessionId, limit: usize) -> Moved<Vec<CallId>>;
}
