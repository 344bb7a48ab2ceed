//! A session goes in good order.

use crate::store::{
    Leave, Refusal, StoreError,
    engine::{
        Effect, Moved, Tables,
        clock::touch,
        returns::{self, Why},
        waits,
    },
};

impl Effect for Leave {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<()> {
        match touch(tables, now, self.session) {
            Ok((_, session)) => {
                let given = returns::all(tables, now, self.session, &session, Why::Left)?.queues;
                waits::gone(tables, self.session, &session, given)?;
                tables.drop_session(self.session)
            }
            Err(StoreError::Refused(Refusal::Stale)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
