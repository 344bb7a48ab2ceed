//! A new generation.

use super::{Invalidate, MAX_INVALIDATIONS, MAX_NOTIFIED_INVALIDATIONS};
use crate::store::{
    agreed::EXPIRED_AT_ONCE,
    engine::{Effect, Moved, Tables, cache::tell, clock::reading},
};

impl Effect for Invalidate {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<u64> {
        let clock = reading(tables, now)?;
        let mut books = tables.cache_books()?;
        books.generation += 1;
        if tables.invalidated_at(&self.scope)?.is_some() {
            tables.drop_invalidation(&self.scope)?;
            books.scopes -= 1;
        }
        tables.put_invalidation(&self.scope, books.generation, clock)?;
        books.scopes += 1;
        for (scope, generation, at) in tables.invalidated_since(0, u64::from(EXPIRED_AT_ONCE))? {
            if at.saturating_add(self.lives_ms) > clock && books.scopes <= MAX_INVALIDATIONS {
                break;
            }
            if generation == books.generation {
                break;
            }
            tables.drop_invalidation(&scope)?;
            books.scopes -= 1;
            books.floor = books.floor.max(generation);
        }
        tables.put_cache_books(&books)?;
        tell(tables, MAX_NOTIFIED_INVALIDATIONS)?;
        Ok(books.generation)
    }
}
