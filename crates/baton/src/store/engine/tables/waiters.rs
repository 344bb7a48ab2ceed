//! Which queues sessions wait for and work for.

use super::Moved;
use crate::{
    message::{Name, SessionId},
    store::wake_up::WakeUp,
};

/// Those who wait, those who are woken, and those who work.
pub(crate) trait Waiters {
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
    /// Puts this on the session's wake-up list, once this call is kept.
    fn wake(&mut self, id: SessionId, wake_up: &WakeUp) -> Moved<()>;
    /// How many batons a session holds: while it has one, it does not count among those that work for its queues.
    fn batons(&mut self, id: SessionId) -> Moved<u64>;
    fn put_batons(&mut self, id: SessionId, count: u64) -> Moved<()>;
    /// How many nodes without a baton work for a queue.
    fn workers(&mut self, queue: &Name) -> Moved<u64>;
    fn put_workers(&mut self, queue: &Name, count: u64) -> Moved<()>;
}
