//! What is cached, what was forgotten, and who computes.

use bytes::Bytes;

use super::Moved;
use crate::message::{CacheKey, Scope, SessionId};

/// The counters of what is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CacheBooks {
    /// Grows with all that is forgotten.
    pub(crate) generation: u64,
    /// What is from before this generation counts as forgotten.
    pub(crate) floor: u64,
    /// What was forgotten since, by key or prefix: how many of them.
    pub(crate) scopes: u64,
    /// What all values count for.
    pub(crate) bytes: u64,
}

/// What is kept under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheKind {
    Value,
    Error,
    /// Nothing is: values of this key may not be.
    Pass,
}

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CachedEntry {
    pub(crate) kind: CacheKind,
    /// At which it is valid.
    pub(crate) generation: u64,
    /// The session and the number of the right to compute that brought it.
    pub(crate) by: (SessionId, u64),
    /// When it was made, and until when it is kept, on the fleet clock.
    pub(crate) made: u64,
    pub(crate) expires: u64,
    pub(crate) value: Bytes,
}

/// The right to compute a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComputeRight {
    pub(crate) session: SessionId,
    pub(crate) number: u64,
    /// At which it began.
    pub(crate) generation: u64,
    /// Until when it is waited for, on the fleet clock.
    pub(crate) ends: u64,
}

/// Values by key, rights to compute, and those who wait for them.
pub(crate) trait CacheTable {
    fn cache_books(&mut self) -> Moved<CacheBooks>;
    fn put_cache_books(&mut self, books: &CacheBooks) -> Moved<()>;
    fn cached(&mut self, key: &CacheKey) -> Moved<Option<CachedEntry>>;
    /// Puts a value where there is none.
    fn put_cached(&mut self, key: &CacheKey, kept: &CachedEntry) -> Moved<()>;
    /// Removes a value, if there is one; how many bytes it had.
    fn drop_cached(&mut self, key: &CacheKey) -> Moved<Option<u64>>;
    /// The values that end first and when, of those that end together the lowest keys.
    fn oldest_cached(&mut self, limit: u32) -> Moved<Vec<(u64, CacheKey)>>;
    /// In which generation a scope was forgotten last.
    fn invalidated_at(&mut self, scope: &Scope) -> Moved<Option<u64>>;
    /// Notes a scope that is not noted, with the fleet clock.
    fn put_invalidation(&mut self, scope: &Scope, generation: u64, clock: u64) -> Moved<()>;
    fn drop_invalidation(&mut self, scope: &Scope) -> Moved<()>;
    /// The scopes forgotten after a generation, oldest first, with generation and clock.
    fn invalidated_since(&mut self, generation: u64, limit: u64) -> Moved<Vec<(Scope, u64, u64)>>;
    fn compute_right(&mut self, key: &CacheKey) -> Moved<Option<ComputeRight>>;
    /// Gives the right to a session; who had it before has it no longer.
    fn put_compute_right(&mut self, key: &CacheKey, compute_right: &ComputeRight) -> Moved<()>;
    fn drop_compute_right(&mut self, key: &CacheKey) -> Moved<()>;
    fn compute_rights_of(&mut self, session: SessionId) -> Moved<Vec<CacheKey>>;
    /// Enters a session among those who wait for a key, to be woken with this number.
    fn add_awaiting(&mut self, key: &CacheKey, session: SessionId, number: u64) -> Moved<()>;
    fn awaiting(&mut self, key: &CacheKey) -> Moved<Vec<(SessionId, u64)>>;
    fn drop_awaiting(&mut self, key: &CacheKey) -> Moved<()>;
    /// Notes that a session cache.
    fn add_cache_user(&mut self, session: SessionId) -> Moved<()>;
    /// Some sessions that cache.
    fn cache_users(&mut self, limit: u64) -> Moved<Vec<SessionId>>;
    /// Notes that it is over; whether it did.
    fn drop_cache_user(&mut self, session: SessionId) -> Moved<bool>;
}
