//! A queue is forgotten.

use super::held;
use crate::store::{
    Books, Kind, Refusal, RemoveQueue,
    engine::{Effect, Moved, Tables},
};

impl Effect for RemoveQueue {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        let name = &self.queue;
        let Some(queue) = tables.queue(name)? else { return Ok(()) };
        let sessions = tables.sessions()?;
        let uses = sessions.iter().find(|(_, it)| {
            it.kind == Kind::Node && (it.queues.contains(name) || it.offers.iter().any(|offer| offer.queue == *name))
        });
        if let Some((session, _)) = uses {
            return Err(Refusal::QueueInUse { queue: name.clone(), session: *session }.into());
        }
        let books = queue.books;
        let messages = held(&books);
        if messages > 0 {
            return Err(Refusal::QueueNotEmpty { queue: name.clone(), messages }.into());
        }
        tables.drop_results_of(name)?;
        tables.drop_keys_of(name)?;
        tables.drop_bookmarks_of(name)?;
        // Whatever became of its messages, they are removed now: so the books of a later queue of the name balance.
        tables.forget_queue(&Books {
            pushed: books.pushed,
            removed: books.done + books.removed + books.cancelled,
            removed_sum: books.done_sum.plus(books.removed_sum).plus(books.cancelled_sum),
            ..Books::new(name.clone())
        })
    }
}
