//! A wake-up is handed on.

use crate::store::{
    Pass,
    engine::{Effect, Moved, Tables, clock::visit, waits::wake_known},
};

impl Effect for Pass {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<()> {
        visit(tables, self.session)?;
        tables.drop_waiter(&self.queue, self.session)?;
        wake_known(tables, &self.queue)
    }
}
