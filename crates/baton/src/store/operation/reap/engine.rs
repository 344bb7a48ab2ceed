//! A session was lost.

use crate::store::{
    Reap, Reaped,
    engine::{
        Effect, Moved, Tables,
        clock::{advance, visit},
        returns::{Returned, end, go_on},
    },
};

impl Effect for Reap {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Reaped> {
        visit(tables, self.session)?;
        let meta = advance(tables, now)?;
        let Returned { back, failed } = if let Some(unreaped) = tables.unreaped(self.target)? {
            go_on(tables, now, self.target, &unreaped)?
        } else {
            let Some(target) = tables.session(self.target)? else { return Ok(Reaped::Gone) };
            if target.expires > meta.clock {
                return Ok(Reaped::Alive);
            }
            let most = tables.returned_at_once();
            end(tables, now, self.target, &target, true, most)?
        };
        Ok(Reaped::Taken { back, failed })
    }
}
