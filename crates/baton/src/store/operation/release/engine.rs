//! A flight ends with nothing.

use super::Release;
use crate::store::engine::{Effect, Moved, Tables, clock::visit, recalls::end_flight};

impl Effect for Release {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        visit(tables, self.session)?;
        match tables.flight(&self.key)? {
            Some(it) if it.session == self.session && it.number == self.number => end_flight(tables, &self.key),
            _ => Ok(()),
        }
    }
}
