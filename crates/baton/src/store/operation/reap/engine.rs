//! A session was lost.

use crate::store::{
    Reap, Reaped,
    engine::{
        Effect, Moved, Tables,
        clock::{advance, visit},
        returns::{Returned, lose},
    },
};

impl Effect for Reap {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Reaped> {
        visit(tables, self.session)?;
        let meta = advance(tables, now)?;
        let Some(target) = tables.session(self.target)? else { return Ok(Reaped::Gone) };
        if target.expires > meta.clock {
            return Ok(Reaped::Alive);
        }
        let Returned { back, dead } = lose(tables, now, self.target, &target)?;
        Ok(Reaped::Taken { back, dead })
    }
}
