//! A new generation.

use super::{Forget, MAX_FORGOTTEN, MAX_TOLD_FORGOTTEN};
use crate::store::{
    agreed::EXPIRED_AT_ONCE,
    engine::{Effect, Moved, Tables, clock::reading, recalls::tell},
};

impl Effect for Forget {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<u64> {
        let clock = reading(tables, now)?;
        let mut books = tables.recall_books()?;
        books.generation += 1;
        if tables.forgotten_at(&self.scope)?.is_some() {
            tables.drop_forgotten(&self.scope)?;
            books.scopes -= 1;
        }
        tables.put_forgotten(&self.scope, books.generation, clock)?;
        books.scopes += 1;
        for (scope, generation, at) in tables.forgotten_since(0, u64::from(EXPIRED_AT_ONCE))? {
            if at.saturating_add(self.lives_ms) > clock && books.scopes <= MAX_FORGOTTEN {
                break;
            }
            if generation == books.generation {
                break;
            }
            tables.drop_forgotten(&scope)?;
            books.scopes -= 1;
            books.floor = books.floor.max(generation);
        }
        tables.put_recall_books(&books)?;
        tell(tables, MAX_TOLD_FORGOTTEN)?;
        Ok(books.generation)
    }
}
