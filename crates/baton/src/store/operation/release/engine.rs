//! A right to compute ends with nothing.

use super::Release;
use crate::store::engine::{Effect, Moved, Tables, cache::end_compute_right, clock::visit};

impl Effect for Release {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        visit(tables, self.session)?;
        match tables.compute_right(&self.key)? {
            Some(it) if it.session == self.session && it.number == self.number => end_compute_right(tables, &self.key),
            _ => Ok(()),
        }
    }
}
