//! What was forgotten is read.

use super::{Invalidations, MAX_READ_INVALIDATIONS, ReadInvalidations};
use crate::store::engine::{Effect, Moved, Tables};

impl Effect for ReadInvalidations {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Invalidations> {
        let books = tables.cache_books()?;
        let scopes = tables.invalidated_since(self.since, MAX_READ_INVALIDATIONS + 1)?;
        let generation = books.generation;
        if scopes.len() as u64 > MAX_READ_INVALIDATIONS {
            return Ok(Invalidations { generation, floor: generation, scopes: Vec::new() });
        }
        let scopes = scopes.into_iter().map(|(scope, at, _)| (scope, at)).collect();
        Ok(Invalidations { generation, floor: books.floor, scopes })
    }
}
