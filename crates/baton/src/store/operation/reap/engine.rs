//! A session was lost.

use crate::store::{
    Reap, Reaped,
    engine::{
        Effect, Moved, Tables,
        clock::touch,
        queues::OpenQueues,
        returns::{self, Returned, Why},
        waits,
    },
};

impl Effect for Reap {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Reaped> {
        let (meta, _) = touch(tables, now, self.session)?;
        let Some(target) = tables.session(self.target)? else { return Ok(Reaped::Gone) };
        if target.expires > meta.clock {
            return Ok(Reaped::Alive);
        }
        let mut queues = OpenQueues::default();
        let Returned { back, dead } = returns::all(tables, &mut queues, now, self.target, &target, Why::Lost)?;
        waits::gone(tables, &mut queues, self.target, &target)?;
        queues.close(tables)?;
        tables.drop_session(self.target)?;
        Ok(Reaped::Taken { back, dead })
    }
}
