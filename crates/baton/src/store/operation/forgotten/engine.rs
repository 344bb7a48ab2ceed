//! What was forgotten is read.

use super::{Forgotten, MAX_READ_FORGOTTEN, ReadForgotten};
use crate::store::engine::{Effect, Moved, Tables};

impl Effect for ReadForgotten {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Forgotten> {
        let books = tables.recall_books()?;
        let scopes = tables.forgotten_since(self.since, MAX_READ_FORGOTTEN + 1)?;
        let generation = books.generation;
        if scopes.len() as u64 > MAX_READ_FORGOTTEN {
            return Ok(Forgotten { generation, floor: generation, scopes: Vec::new() });
        }
        let scopes = scopes.into_iter().map(|(scope, at, _)| (scope, at)).collect();
        Ok(Forgotten { generation, floor: books.floor, scopes })
    }
}
