//! A session becomes the drainer of a queue.

use crate::store::{
    DrainBegin, Draining, Refusal,
    engine::{
        Effect, Moved, Tables,
        clock::{alive, visit},
    },
};

impl Effect for DrainBegin {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Draining> {
        let session = visit(tables, self.session)?;
        let dispose_no = session.dispose_no;
        let Some(mut queue) = tables.queue(&self.queue)? else { return Ok(Draining { upto: 0, dispose_no }) };
        if let Some(holder) = alive(tables, queue.drainer)?.filter(|holder| *holder != self.session) {
            return Err(Refusal::DrainBusy { holder }.into());
        }
        queue.drainer = Some(self.session);
        tables.put_queue(&queue)?;
        Ok(Draining { upto: queue.books.failed_seq, dispose_no })
    }
}
