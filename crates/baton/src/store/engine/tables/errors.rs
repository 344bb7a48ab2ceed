//! Errors: messages that failed for good.

use super::Moved;
use crate::{
    message::{MessageId, Name},
    store::ErrorRecord,
};

/// The errors of a queue, by number and by id.
pub(crate) trait Errors {
    fn put_error(&mut self, queue: &Name, message: &ErrorRecord) -> Moved<()>;
    /// Errors with `after < seq <= upto`: at most `limit`, and with at most `budget` bytes unless it is one.
    fn error_page(&mut self, queue: &Name, after: u64, upto: u64, limit: u32, budget: u64) -> Moved<Vec<ErrorRecord>>;
    /// The ids of the first errors, by number.
    fn first_errors(&mut self, queue: &Name, limit: u32) -> Moved<Vec<MessageId>>;
    fn take_error(&mut self, queue: &Name, id: MessageId) -> Moved<Option<ErrorRecord>>;
    /// The ids of all errors.
    fn error_ids(&mut self, queue: &Name) -> Moved<Vec<MessageId>>;
}
