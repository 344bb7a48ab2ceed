//! A session gets the right to remove the failed messages of a queue.

use crate::store::{
    Refusal, RemovalBegin, RemovalBegun,
    engine::{
        Effect, Moved, Tables,
        clock::{alive, visit},
    },
};

impl Effect for RemovalBegin {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<RemovalBegun> {
        let session = visit(tables, self.session)?;
        let dispose_no = session.dispose_no;
        let Some(mut queue) = tables.queue(&self.queue)? else { return Ok(RemovalBegun { upto: 0, dispose_no }) };
        if let Some(holder) = alive(tables, queue.drainer)?.filter(|holder| *holder != self.session) {
            return Err(Refusal::RemovalBusy { holder }.into());
        }
        queue.drainer = Some(self.session);
        tables.put_queue(&queue)?;
        Ok(RemovalBegun { upto: queue.books.failed_seq, dispose_no })
    }
}
