//! One queue and one source are looked at, and nothing is moved.

use crate::store::{
    Progress, ReadProgress,
    engine::{Effect, Moved, Tables},
};

impl Effect for ReadProgress {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Progress> {
        let source = match &self.source {
            Some(source) => tables.source(source)?,
            None => None,
        };
        let books = tables.queue(&self.queue)?.map(|queue| queue.books);
        let due_ms = tables.next_delayed(&self.queue)?.map(|(due, _)| due);
        Ok(Progress { books, due_ms, ended: source.is_some_and(|source| source.ended) })
    }
}
