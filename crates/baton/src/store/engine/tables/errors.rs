//! Errors: messages that failed for good.

use super::Moved;
use crate::{message::Name, store::DeadMessage};

/// The errors of a queue, by number and by id.
pub(crate) trait Errors {
    fn put_dead(&mut self, queue: &Name, message: &DeadMessage) -> Moved<()>;
    /// Errors with `after < seq <= upto`: at most `limit`, and with at most `budget` bytes unless it is one.
    fn dead_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<DeadMessage>>;
    fn take_dead(&mut self, queue: &Name, id: u64) -> Moved<Option<DeadMessage>>;
    /// The ids of all errors.
    fn dead_ids(&mut self, queue: &Name) -> Moved<Vec<u64>>;
}
