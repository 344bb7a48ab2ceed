//! A session goes in good order.

use crate::store::{
    Leave, Refusal, StoreError,
    engine::{
        Effect, Moved, Tables,
        clock::visit,
        queues::OpenQueues,
        returns::{self, Why},
        waits,
    },
};

impl Effect for Leave {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<()> {
        match visit(tables, self.session) {
            Ok(session) => {
                let mut queues = OpenQueues::default();
                returns::all(tables, &mut queues, now, self.session, &session, Why::Left)?;
                waits::gone(tables, &mut queues, self.session, &session)?;
                queues.close(tables)?;
                tables.drop_session(self.session)
            }
            Err(StoreError::Refused(Refusal::Stale)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
